package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

// file is one of the page's files, as it goes over the wire.
type file struct {
	plain, zipped []byte // zipped is nil where that is not smaller
	kind, tag     string
	cache         string
}

// files holds all of the page's files in memory: the page is small, and an unreadable file shows when the program
// starts.
type files struct{ all map[string]*file }

// kinds has the content types. The machine's own tables differ: Windows takes .js for text where some programs are
// installed.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".json": "application/json", ".webmanifest": "application/manifest+json", ".svg": "image/svg+xml", ".png": "image/png", ".txt": "text/plain; charset=utf-8",
}

func load(from fs.FS) (*files, error) {
	out := &files{all: map[string]*file{}}
	err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		f := &file{plain: b, tag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, cache: "no-cache"}
		if f.kind = kinds[path.Ext(name)]; f.kind == "" {
			f.kind = mime.TypeByExtension(path.Ext(name))
		}
		if strings.HasPrefix(name, "assets/") { // their names have a hash of their contents
			f.cache = "public, max-age=31536000, immutable"
		}
		var z bytes.Buffer
		w, _ := gzip.NewWriterLevel(&z, gzip.BestCompression) // the level exists
		w.Write(b)                                            // to memory
		w.Close()
		if z.Len() < len(b)*9/10 {
			f.zipped = z.Bytes()
		}
		out.all["/"+name] = f
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("the voice page: %w", err)
	}
	if out.all["/index.html"] == nil {
		return nil, fmt.Errorf("the voice page: %w: index.html", fs.ErrNotExist)
	}
	out.all["/"] = out.all["/index.html"]
	return out, nil
}

func (f *files) has(path string) bool { return f.all[path] != nil }

func (f *files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	one := f.all[r.URL.Path]
	if one == nil {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	h := w.Header()
	h.Set("Content-Type", one.kind)
	h.Set("Cache-Control", one.cache)
	h.Set("Etag", one.tag)
	body := one.plain
	if one.zipped != nil {
		h.Set("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") && r.Header.Get("Range") == "" {
			h.Set("Content-Encoding", "gzip")
			h.Set("Etag", strings.TrimSuffix(one.tag, `"`)+`-gzip"`)
			body = one.zipped
		}
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
