// Package web holds the voice page, built from the TypeScript beside it. After a change build it again (make web);
// building the program needs no Node.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files are the page's files: index.html, which must never be cached, and assets/, whose names change with their
// contents.
var Files = sub()

func sub() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // only for an invalid path
	}
	return files
}
