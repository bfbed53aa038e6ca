package speaker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Bounds of files that are played by name.
const (
	MaxSound = 64 << 20 // bytes: more than two hours
	maxNames = 1000     // that Names looks at
)

// Sounds is a directory of sound files. They are known by their plain names, and nothing outside of the directory can be
// reached, by links in it neither. Empty is no directory.
type Sounds string

// Open opens a file to be played.
func (s Sounds) Open(name string, loop bool) (*OpusFile, error) {
	if s == "" {
		return nil, errors.New("speaker: there is no directory of sounds")
	}
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\:`) {
		return nil, fmt.Errorf("speaker: %q is no name of a file in %s: write it without a path", name, s)
	}
	root, err := os.OpenRoot(string(s))
	if err != nil {
		return nil, fmt.Errorf("speaker: no sounds: %w; make that directory and put Ogg Opus files there", err)
	}
	defer root.Close()
	info, err := root.Stat(name) // before it is opened, since to open a pipe would wait
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("speaker: there is no file %q in %s", name, s)
	case err != nil:
		return nil, fmt.Errorf("speaker: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("speaker: %q is no file", name)
	case info.Size() > MaxSound:
		return nil, fmt.Errorf("speaker: %q has %d MiB, and at most %d are played", name, info.Size()>>20, MaxSound>>20)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("speaker: %w", err)
	}
	return OpenOpus(f, loop)
}

// openTime is how long a command waits for a file, which is read whole when it is opened.
const openTime = 5 * time.Second

// openWithin is Open for those who may not wait for a disk that hangs.
func (s Sounds) openWithin(name string, loop bool) (*OpusFile, error) {
	type result struct {
		f   *OpusFile
		err error
	}
	opened := make(chan result)
	given := make(chan struct{})
	go func() {
		f, err := s.Open(name, loop)
		select {
		case opened <- result{f, err}:
		case <-given:
			if f != nil {
				f.Close()
			}
		}
	}()
	select {
	case r := <-opened:
		return r.f, r.err
	case <-time.After(openTime):
		close(given)
		return nil, fmt.Errorf("speaker: %q could not be read within %v: look whether the disk with %s works", name, openTime, s)
	}
}

// Names lists files that may be played, by what they are called.
func (s Sounds) Names() (names []string) {
	if s == "" {
		return nil
	}
	dir, err := os.Open(string(s))
	if err != nil {
		return nil
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(maxNames)
	for _, e := range entries {
		switch strings.ToLower(filepath.Ext(e.Name())) {
		case ".opus", ".ogg", ".oga":
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}
