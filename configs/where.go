package configs

import (
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// where finds a key or a value of the file by its token: the path to it as people write it, and the type of its
// section, nil where that is none of ours. The tokens may be those of another reading of the same text.
func (s *source) where(t *token.Token) (path string, section reflect.Type) {
	if s.tree == nil || t == nil || t.Position == nil {
		return "", nil
	}
	root := s.root
	if root == nil {
		root = reflect.TypeFor[Config]()
	}
	for _, doc := range s.tree.Docs {
		if doc.Body == nil {
			continue
		}
		if keys, section, ok := search(doc.Body, root, nil, t.Position); ok {
			return strings.Join(keys, "."), section
		}
	}
	return "", nil
}

// search looks for a position below a node whose values are of that type.
func search(n ast.Node, of reflect.Type, path []string, at *token.Position) (keys []string, section reflect.Type, found bool) {
	here := func(n ast.Node) bool {
		p := n.GetToken().Position
		return p != nil && p.Line == at.Line && p.Column == at.Column
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		if here(n) {
			return path, of, true
		}
		for _, v := range n.Values {
			if keys, section, found = search(v, of, path, at); found {
				return keys, section, true
			}
		}
	case *ast.MappingValueNode:
		name := n.Key.GetToken().Value
		below := append(path[:len(path):len(path)], name)
		if here(n.Key) {
			return below, of, true
		}
		if here(n) && n.Value != nil && !here(n.Value) { // its token is that of the colon
			return below, of, true
		}
		if n.Value != nil {
			return search(n.Value, child(of, name), below, at)
		}
	case *ast.SequenceNode:
		if here(n) {
			return path, of, true
		}
		for _, v := range n.Values {
			if keys, section, found = search(v, child(of, ""), path, at); found {
				return keys, section, true
			}
		}
	case *ast.AnchorNode:
		return search(n.Value, of, path, at)
	case *ast.TagNode:
		return search(n.Value, of, path, at)
	default:
		if n != nil && here(n) {
			return path, of, true
		}
	}
	return nil, nil, false
}

// child returns the type of what stands under a key of a type, nil if none of ours does.
func child(of reflect.Type, key string) reflect.Type {
	if of == nil {
		return nil
	}
	switch of.Kind() {
	case reflect.Map, reflect.Slice, reflect.Array, reflect.Pointer:
		return of.Elem()
	case reflect.Struct:
		for f := range of.Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name == key {
				return f.Type
			}
		}
	}
	return nil
}

// own returns the keys of a section alone.
func own(section reflect.Type) (out []string) {
	if section == nil || section.Kind() != reflect.Struct {
		return nil
	}
	for f := range section.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		out = append(out, name)
	}
	return out
}

// prune takes the innermost key with its value that stands at a position out of a tree, and tells whether there was
// one.
func prune(n ast.Node, at *token.Position) bool {
	switch n := n.(type) {
	case *ast.MappingNode:
		for i := len(n.Values) - 1; i >= 0; i-- { // of a key that is there twice, the second
			v := n.Values[i]
			if _, _, found := search(v, nil, nil, at); !found {
				continue
			}
			if v.Value == nil || !prune(v.Value, at) {
				n.Values = append(n.Values[:i], n.Values[i+1:]...)
			}
			return true
		}
	case *ast.MappingValueNode:
		return n.Value != nil && prune(n.Value, at)
	case *ast.SequenceNode:
		for _, v := range n.Values {
			if prune(v, at) {
				return true
			}
		}
	case *ast.AnchorNode:
		return prune(n.Value, at)
	case *ast.TagNode:
		return prune(n.Value, at)
	}
	return false
}
