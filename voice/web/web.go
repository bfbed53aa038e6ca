// Package web holds the voice page, built from the TypeScript beside it. Whoever changes the page builds it anew (make web);
// building the program needs no Node.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files are the page's files: index.html, which is never to be cached, and assets/, whose names change with what is in them.
var Files = sub()

func sub() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // only for a path that is none
	}
	return files
}
