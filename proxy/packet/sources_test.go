package packet

import (
	"compress/gzip"
	"encoding/json"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryLayoutNamesItsSource: whoever doubts a layout finds where it comes from in its comment, by a name that there
// is or the address of a page. So it is for each function that reads or writes bytes, and for the packages beside this
// one that hold formats of others.
func TestEveryLayoutNamesItsSource(t *testing.T) {
	packed, err := os.Open("../proto/testdata/packet_ids.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	open, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Versions []struct{ Packets map[string]int }
	}
	if err := json.NewDecoder(open).Decode(&list); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, v := range list.Versions {
		for name := range v.Packets {
			known[name] = true
		}
	}
	if !known["play/toClient/position"] {
		t.Fatal("no names of packets")
	}
	page, name := regexp.MustCompile(`https://\S+`), regexp.MustCompile(`\b[a-z]+/to[A-Z]\w+/\w+`)
	sources := func(comment string) bool {
		_, layout, ok := strings.Cut(comment, "\nLayout: ")
		if !ok {
			return false
		}
		all := name.FindAllString(layout, -1)
		for _, n := range all {
			if !known[n] {
				t.Errorf("there is no packet %s: %s", n, comment)
			}
		}
		return len(all) > 0 || page.MatchString(layout)
	}
	for _, dir := range []string{".", "../field", "../floodgate", "../bungee"} {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		files := token.NewFileSet()
		var parsed []*ast.File
		for _, name := range names {
			f, err := parser.ParseFile(files, name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, f)
		}
		d, err := doc.NewFromFiles(files, parsed, dir) // of tests it takes the examples
		if err != nil {
			t.Fatal(err)
		}
		if dir != "." {
			if !sources(d.Doc) {
				t.Errorf("package %s: no source of its layout", d.Name)
			}
			continue
		}
		all, n := map[string]*doc.Func{}, 0
		for _, f := range d.Funcs {
			all[f.Name] = f
		}
		for _, of := range d.Types {
			for _, f := range of.Funcs {
				all[f.Name] = f
			}
		}
		for _, f := range all {
			if !moves(f.Decl.Type.Params) && !moves(f.Decl.Type.Results) {
				continue
			}
			n++
			if what, ok := strings.CutPrefix(f.Name, "Append"); ok && all["Parse"+what] != nil {
				f = all["Parse"+what]
			}
			if !sources(f.Doc) {
				t.Errorf("%s: no source of its layout", f.Name)
			}
		}
		if n < 80 {
			t.Errorf("only %d functions read or write bytes", n)
		}
	}
}

// moves tells whether one of the fields is a slice of bytes, or a reader of one.
func moves(all *ast.FieldList) (has bool) {
	if all == nil {
		return false
	}
	for _, f := range all.List {
		switch x := f.Type.(type) {
		case *ast.ArrayType:
			elem, _ := x.Elt.(*ast.Ident)
			has = has || x.Len == nil && elem != nil && elem.Name == "byte"
		case *ast.StarExpr:
			sel, _ := x.X.(*ast.SelectorExpr)
			has = has || sel != nil && sel.Sel.Name == "Reader"
		}
	}
	return has
}
