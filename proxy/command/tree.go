package command

import (
	"bytes"
	"errors"
	"slices"

	"github.com/earshot-mc/earshot/proxy/field"
)

// Bits of a node's flags. The lowest two are its type.
const (
	typeMask       = 0x03
	typeRoot       = 0
	typeLiteral    = 1
	typeArgument   = 2
	executable     = 0x04
	redirects      = 0x08
	hasSuggestions = 0x10
)

const (
	singleWord   = 0 // kinds of the string parser
	greedyPhrase = 2
	askServer    = "minecraft:ask_server"
	maxVarInt    = 5
)

// Outcome says what became of a command tree.
type Outcome uint8

// The bits of an Outcome; without Changed the packet passes as it came. Blind and Refused are fallbacks, to be counted.
const (
	Changed   Outcome = 1 << iota
	Unwrapped         // a mod's parsers were taken out of their wrappers
	Replaced          // a literal of the backend's gave way to one of ours
	Blind             // not every node could be read: a literal or wrapper may have been missed
	Refused           // our commands are not in it: the tree is broken, or odd beyond what we can read
)

// treeKey is one set of commands in one version.
type treeKey struct {
	protocol int32
	allowed  uint64
}

// tree is our commands as nodes, ready except for their places in the backend's tree.
type tree struct {
	*grammar
	nodes    []piece
	literals map[string]struct{}
	size     int // by which a packet grows at most, in bytes
}

// piece is one node of ours.
type piece struct {
	root     bool // a child of the root
	flags    byte
	children []int32 // by place among our nodes
	tail     []byte  // all the bytes behind the children
}

// tree returns the nodes of the commands that allowed has bits for. Memory holds as many trees as there are
// combinations of permissions in use.
func (t *Table[S]) tree(protocol int32, allowed uint64) *tree {
	g := grammarOf(protocol)
	if g == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := treeKey{protocol, allowed}
	if tr := t.trees[key]; tr != nil && tr.grammar == g { // else the version has been mended since
		return tr
	}
	tr := &tree{grammar: g, literals: map[string]struct{}{}, size: 4 * maxVarInt}
	for i := range t.commands {
		if allowed&(1<<i) != 0 {
			addCommand(tr, &t.commands[i])
		}
	}
	for _, p := range tr.nodes {
		tr.size += maxVarInt*(3+len(p.children)) + len(p.tail) // flags, count, children, and itself among the root's
	}
	t.trees[key] = tr
	return tr
}

// addCommand appends a literal for each name of c and, shared by them all, a chain of its arguments.
func addCommand[S Source](tr *tree, c *Command[S]) {
	names := append([]string{c.Name}, c.Aliases...)
	optional := func(i int) byte { // executable with i arguments
		if i >= len(c.Args) || c.Args[i].Optional {
			return executable
		}
		return 0
	}
	var children []int32
	if len(c.Args) > 0 {
		children = []int32{int32(len(tr.nodes) + len(names))}
	}
	for _, name := range names {
		tr.literals[name] = struct{}{}
		tr.nodes = append(tr.nodes, piece{true, typeLiteral | optional(0), children, field.AppendString(nil, name)})
	}
	for i, a := range c.Args {
		last := i == len(c.Args)-1
		// A single word is of letters, digits and few other characters. An argument that may have more takes all the
		// rest of the line, so that the client shows nothing in red that we accept.
		greedy := a.Kind == Greedy || a.Kind == Token || a.Kind == Server
		p := piece{flags: typeArgument | optional(i+1)}
		p.tail = append(append(field.AppendString(nil, a.Name), tr.str...), singleWord)
		if greedy {
			p.flags |= executable
			p.tail[len(p.tail)-1] = greedyPhrase
		} else if !last {
			p.children = []int32{int32(len(tr.nodes) + 1)}
		}
		if a.Kind == Player || a.Kind == Server || a.Suggest != nil {
			p.flags |= hasSuggestions
			p.tail = field.AppendString(p.tail, askServer)
		}
		tr.nodes = append(tr.nodes, p)
		if greedy {
			break
		}
	}
}

// Splice puts the commands that src may use into a backend's command tree: a clientbound DeclareCommands body. It
// returns what it appended to dst, which must not overlap body; without Changed it returns nil, and the packet passes
// as it came. protocol is 393 (1.13) or later, and supported.
func (t *Table[S]) Splice(src S, protocol int32, dst, body []byte) ([]byte, Outcome) {
	tr := t.tree(protocol, t.allowedBits(src))
	if tr == nil {
		return nil, Refused
	}
	return tr.splice(dst, body)
}

// Unwrap does as Splice, without commands of ours: it takes the wrappers of mods' parsers off.
func Unwrap(protocol int32, dst, body []byte) ([]byte, Outcome) {
	g := grammarOf(protocol)
	if g == nil {
		return nil, Refused
	}
	return (&tree{grammar: g}).splice(dst, body)
}

func (tr *tree) splice(dst, body []byte) (out []byte, done Outcome) {
	if len(tr.nodes) > 0 { // first: a wrapped parser's length is plain
		out, done = tr.add(dst, body)
	}
	if done&Changed != 0 {
		body = out[len(dst):]
	}
	if bytes.Contains(body, tr.marker) {
		bare, how := tr.unwrap(body)
		done |= how
		if how&Unwrapped != 0 {
			out, done = append(dst, bare...), done|Changed
		}
	}
	return out, done
}

// node holds what was read of a node.
type node struct {
	flags    byte
	count    int    // of children
	children []byte // their VarInts, without the count
	tail     int    // bytes left in the reader behind the children
	name     []byte // of a literal or argument
	parser   int    // bytes left in the reader from the parser's id on
	shape    shape
}

var errNodeType = errors.New("there is no such type of node")

// read reads one node. When shape is unknown, the reader stands behind the id of an unknown parser, and nobody can tell
// where the node ends.
func (g *grammar) read(r *field.Reader) (n node) {
	n.flags = r.U8()
	n.count = r.Count(1)
	from := *r
	for range n.count {
		r.VarInt()
	}
	n.children, n.tail = from.Raw(from.Len()-r.Len()), r.Len()
	if n.flags&redirects != 0 {
		r.VarInt()
	}
	switch n.flags & typeMask {
	case typeRoot:
	case typeLiteral:
		n.name = r.StringBytes(field.MaxString)
	case typeArgument:
		n.name, n.parser = r.StringBytes(field.MaxString), r.Len()
		n.shape = g.parser(r)
		switch n.shape {
		case unknown:
			return n
		case wrapped:
			g.wrapped(r)
		default:
			n.shape.properties(r)
		}
		if n.flags&hasSuggestions != 0 {
			r.StringBytes(field.MaxString)
		}
	default:
		r.Fail(errNodeType)
	}
	return n
}

// wrapped reads what follows a wrapper's marker: the real id of the parser, and its properties.
func (g *grammar) wrapped(r *field.Reader) (id, properties []byte) {
	from := *r
	if g.byName != nil {
		r.StringBytes(field.MaxString)
	} else {
		r.VarInt()
	}
	return from.Raw(from.Len() - r.Len()), r.Bytes(r.Len())
}

// unwrapper copies a packet without the wrappers in it.
type unwrapper struct {
	*grammar
	body, out []byte
	copied    int // bytes of body that out has, in some form
}

// unwrap copies body without wrappers. Behind an unknown parser it looks for the marker instead of walking: no node has
// these bytes by chance, and a wrapper left in would cost the player the connection.
func (g *grammar) unwrap(body []byte) ([]byte, Outcome) {
	u := unwrapper{grammar: g, body: body, out: make([]byte, 0, len(body))}
	var done Outcome
	r := field.NewReader(body)
	for range r.Count(2) {
		n := g.read(r)
		if r.Err() != nil {
			return body, Blind
		}
		if n.shape == unknown {
			u.search(len(body) - r.Len())
			done = Blind
			break
		}
		if n.shape == wrapped {
			u.take(len(body) - n.parser)
		}
	}
	if u.copied > 0 {
		done |= Unwrapped
	}
	return append(u.out, body[u.copied:]...), done
}

// take copies everything up to the wrapper at a place in body, and the parser in it.
func (u *unwrapper) take(at int) bool {
	r := field.NewReader(u.body[at+len(u.marker):])
	id, properties := u.wrapped(r)
	if r.Err() != nil {
		return false
	}
	u.out = append(append(append(u.out, u.body[u.copied:at]...), id...), properties...)
	u.copied = len(u.body) - r.Len()
	return true
}

// search takes all wrappers from a place in body on.
func (u *unwrapper) search(at int) {
	for {
		i := bytes.Index(u.body[at:], u.marker)
		if i < 0 {
			return
		}
		if at += i; u.take(at) {
			at = u.copied
		} else {
			at++
		}
	}
}

// add appends body to dst with our nodes behind the backend's, and our literals last among the root's children.
func (tr *tree) add(dst, body []byte) ([]byte, Outcome) {
	r := field.NewReader(body)
	total := r.Count(2)
	nodes := *r
	index, end, ok := tr.root(nodes, total, body)
	if !ok {
		return nil, Refused
	}
	for range index {
		tr.read(r)
	}
	before := len(body) - r.Len()
	root := tr.read(r)
	if r.Err() != nil || root.flags&typeMask != typeRoot || len(body)-r.Len() > end {
		return nil, Refused
	}
	drop, done := tr.rivals(nodes, total, root)
	children, count := without(root, drop)

	dst = slices.Grow(dst, len(body)+tr.size)
	dst = field.AppendVarInt(dst, int32(total+len(tr.nodes)))
	dst = append(dst, body[len(body)-nodes.Len():before]...)
	dst = field.AppendVarInt(append(dst, root.flags), int32(count+len(tr.literals)))
	dst = append(dst, children...)
	for i, p := range tr.nodes {
		if p.root {
			dst = field.AppendVarInt(dst, int32(total+i))
		}
	}
	dst = append(dst, body[len(body)-root.tail:end]...)
	for _, p := range tr.nodes {
		dst = field.AppendVarInt(append(dst, p.flags), int32(len(p.children)))
		for _, c := range p.children {
			dst = field.AppendVarInt(dst, int32(total)+c)
		}
		dst = append(dst, p.tail...)
	}
	return field.AppendVarInt(dst, int32(index)), done | Changed
}

// root returns the index of the root, which is the last VarInt of the packet, and where that begins. Nearly every
// server writes the root first, and a last byte of 0 is no end of a longer VarInt; any other tree is read whole.
func (tr *tree) root(r field.Reader, total int, body []byte) (index, at int, ok bool) {
	if total == 0 {
		return 0, 0, false
	}
	if first := r; body[len(body)-1] == 0 && first.U8()&typeMask == typeRoot {
		return 0, len(body) - 1, true
	}
	for range total {
		if tr.read(&r).shape == unknown {
			return 0, 0, false
		}
	}
	at = len(body) - r.Len()
	index = int(r.VarInt())
	return index, at, r.End() == nil && index >= 0 && index < total
}

// rivals finds the root's children that are literals with our names. Servers write the root's children first, so the
// walk is short and meets no argument.
func (tr *tree) rivals(r field.Reader, total int, root node) (drop []int, done Outcome) {
	child := make([]uint64, (total+63)/64)
	last := -1
	for kids := field.NewReader(root.children); kids.Len() > 0; {
		if i := int(kids.VarInt()); i >= 0 && i < total {
			child[i/64] |= 1 << (i % 64)
			last = max(last, i)
		}
	}
	for i := 0; i <= last; i++ {
		n := tr.read(&r)
		if r.Err() != nil || n.shape == unknown {
			return drop, done | Blind
		}
		if n.flags&typeMask != typeLiteral || child[i/64]&(1<<(i%64)) == 0 {
			continue
		}
		if _, ours := tr.literals[string(n.name)]; ours {
			drop, done = append(drop, i), done|Replaced
		}
	}
	return drop, done
}

// without returns a root's children except those in drop.
func without(root node, drop []int) (children []byte, count int) {
	if len(drop) == 0 {
		return root.children, root.count
	}
	for kids := field.NewReader(root.children); kids.Len() > 0; {
		if i := kids.VarInt(); !slices.Contains(drop, int(i)) {
			children, count = field.AppendVarInt(children, i), count+1
		}
	}
	return children, count
}
