package speaker

import (
	"errors"
	"fmt"
	"io"
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

// Sounds is a directory of sound files, known by their plain names. Nothing outside of it can be reached, not even by
// links in it. Empty: no directory.
type Sounds string

// Sound is a file that is ready to be played. Closing it twice does no harm.
type Sound interface {
	Frames
	io.Closer
	Length() time.Duration // of one time through; 0: not known
}

// Converter makes a sound of a file that cannot be sent as it is. The source is the sound's from then on, and closed
// with it, or at once when it cannot be played. voice/transcode has one.
type Converter func(src io.ReadSeekCloser, loop bool) (Sound, error)

// Open opens a file to be played. convert handles files that [OpenOpus] does not take; nil: they are an error.
func (s Sounds) Open(name string, loop bool, convert Converter) (Sound, error) {
	src, err := s.file(name)
	if err != nil {
		return nil, err
	}
	f, err := OpenOpus(src, loop)
	switch {
	case err == nil:
		return f, nil
	case !errors.Is(err, ErrFile):
		return nil, err
	case convert == nil:
		return nil, fmt.Errorf("%w; or use an Earshot that was built with libopus, which plays other files, too", err)
	}
	if src, err = s.file(name); err != nil {
		return nil, err
	}
	sound, err := convert(src, loop)
	if err != nil {
		return nil, fmt.Errorf("speaker: %w", err)
	}
	return sound, nil
}

// file opens a file of the directory.
func (s Sounds) file(name string) (io.ReadSeekCloser, error) {
	if s == "" {
		return nil, errors.New("speaker: there is no directory of sounds")
	}
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\:`) {
		return nil, fmt.Errorf("speaker: %q is no name of a file in %s: write it without a path", name, s)
	}
	root, err := os.OpenRoot(string(s))
	if err != nil {
		return nil, fmt.Errorf("speaker: no sounds: %w; make that directory and put sound files there", err)
	}
	defer root.Close()
	info, err := root.Stat(name) // before it is opened, since opening a pipe would wait
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
	return f, nil
}

// openTime bounds a command's wait for a file, which is read whole when it is opened.
const openTime = 5 * time.Second

// openWithin does as Open, but does not wait for a disk that hangs.
func (s Sounds) openWithin(name string, loop bool, convert Converter) (Sound, error) {
	type result struct {
		f   Sound
		err error
	}
	opened := make(chan result)
	given := make(chan struct{})
	go func() {
		f, err := s.Open(name, loop, convert)
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

// Names lists files that may be played; converted tells whether that includes more than Ogg Opus.
func (s Sounds) Names(converted bool) (names []string) {
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
		case ".wav", ".mp3", ".flac":
			if converted {
				names = append(names, e.Name())
			}
		}
	}
	slices.Sort(names)
	return names
}
