package command

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// treeVector is a line of testdata/trees.jsonl.gz, which another implementation wrote.
type treeVector struct {
	Kind      string
	Protocols []int32
	In, Out   string
}

func treeVectors(t testing.TB) (all []treeVector) {
	t.Helper()
	f, err := os.Open("testdata/trees.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(z); d.More(); {
		var v treeVector
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	if len(all) < 20 {
		t.Fatalf("only %d trees", len(all))
	}
	return all
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// shapesByProtocol is testdata/parsers.jsonl: the shape of each parser's properties, by name or by number, as the
// definitions of another implementation have it.
var shapesByProtocol = sync.OnceValue(func() map[int32]map[string]string {
	lines, err := testkit.Lines[struct {
		Protocols []int32
		Shapes    json.RawMessage
	}]("testdata/parsers.jsonl")
	if err != nil {
		panic(err)
	}
	all := map[int32]map[string]string{}
	for _, v := range lines {
		shapes := map[string]string{}
		if v.Shapes[0] == '[' {
			var list []string
			if err := json.Unmarshal(v.Shapes, &list); err != nil {
				panic(err)
			}
			for i, s := range list {
				shapes[strconv.Itoa(i)] = s
			}
		} else if err := json.Unmarshal(v.Shapes, &shapes); err != nil {
			panic(err)
		}
		for _, p := range v.Protocols {
			all[p] = shapes
		}
	}
	return all
})

// decoded is a tree as objects, which the code under test never makes.
type decoded struct {
	nodes []decodedNode
	root  int
}

type decodedNode struct {
	flags              byte
	children           []int
	redirect           int
	name, parser, asks string
	properties         string
}

// decode returns strict: every number in its shortest form, every index a node's, nothing behind the root index, no
// parser but the game's.
func decode(protocol int32, body []byte) (d decoded, err error) {
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("%v", e)
		}
	}()
	shapes := shapesByProtocol()[protocol]
	at := 0
	take := func(n int) []byte {
		if n < 0 || n > len(body)-at {
			panic("short")
		}
		at += n
		return body[at-n : at]
	}
	number := func() int {
		from, v := at, uint32(0)
		for shift := 0; ; shift += 7 {
			c := take(1)[0]
			v |= uint32(c&0x7f) << shift
			if c < 0x80 {
				break
			}
			if shift >= 28 {
				panic("long number")
			}
		}
		if !bytes.Equal(body[from:at], field.AppendVarInt(nil, int32(v))) {
			panic("number not in its shortest form")
		}
		return int(int32(v))
	}
	text := func() string {
		s := take(number())
		if !utf8.Valid(s) {
			panic("text")
		}
		return string(s)
	}
	n := number()
	if n < 1 || n > len(body) {
		panic("count")
	}
	index := func() int {
		if i := number(); i >= 0 && i < n {
			return i
		}
		panic("index")
	}
	for range n {
		node := decodedNode{flags: take(1)[0], redirect: -1}
		for range number() {
			node.children = append(node.children, index())
		}
		if node.flags&8 != 0 {
			node.redirect = index()
		}
		switch node.flags & 3 {
		case 1:
			node.name = text()
		case 2:
			node.name = text()
			if protocol < 759 {
				node.parser = text()
			} else {
				node.parser = strconv.Itoa(number())
			}
			from := at
			switch shape, ok := shapes[node.parser]; {
			case !ok:
				panic("parser " + node.parser)
			case shape == "oneByte":
				take(1)
			case shape == "varInt":
				number()
			case shape == "fourByte":
				take(4)
			case shape == "ident":
				text()
			case shape == "bounds4" || shape == "bounds8":
				size := int(shape[6] - '0')
				flags := take(1)[0]
				if flags&1 != 0 {
					take(size)
				}
				if flags&2 != 0 {
					take(size)
				}
			}
			node.properties = string(body[from:at])
			if node.flags&16 != 0 {
				node.asks = text()
			}
		case 3:
			panic("type 3")
		}
		d.nodes = append(d.nodes, node)
	}
	d.root = index()
	if at != len(body) {
		panic("bytes left")
	}
	return d, nil
}

func (n decodedNode) equal(m decodedNode) bool {
	return n.flags == m.flags && slices.Equal(n.children, m.children) && n.redirect == m.redirect && n.name == m.name &&
		n.parser == m.parser && n.asks == m.asks && n.properties == m.properties
}

// checkSplice compares a tree before and after: the backend's nodes are what they were, the root lost the literals with
// our names and nothing else, and gained ours, which lead to nothing but ours.
func checkSplice(before, after decoded, names []string) error {
	if after.root != before.root || len(after.nodes) <= len(before.nodes) {
		return fmt.Errorf("root %d of %d nodes, before %d of %d", after.root, len(after.nodes), before.root, len(before.nodes))
	}
	base := len(before.nodes)
	want := before.nodes[before.root]
	want.children = nil
	for _, c := range before.nodes[before.root].children {
		if n := before.nodes[c]; n.flags&3 != 1 || !slices.Contains(names, n.name) {
			want.children = append(want.children, c)
		}
	}
	var ours []string
	got := after.nodes[after.root]
	for _, c := range got.children[min(len(want.children), len(got.children)):] {
		if c < base {
			return fmt.Errorf("child %d of the root is the backend's", c)
		}
		want.children = append(want.children, c)
		ours = append(ours, after.nodes[c].name)
	}
	if !got.equal(want) || !slices.Equal(ours, names) {
		return fmt.Errorf("root %+v with ours %q, want %+v with %q", got, ours, want, names)
	}
	for i, n := range after.nodes {
		switch {
		case i == after.root:
		case i < base && !n.equal(before.nodes[i]):
			return fmt.Errorf("node %d is %+v, was %+v", i, n, before.nodes[i])
		case i >= base && slices.ContainsFunc(n.children, func(c int) bool { return c < base }):
			return fmt.Errorf("our node %d leads to the backend's", i)
		}
	}
	return nil
}

var allNames = []string{"server", "send", "glist", "online", "find", "alert", "hub", "lobby", "earshot"}

func TestTreeVectors(t *testing.T) {
	table := testTable(t)
	kinds := map[string]map[int32]bool{}
	for _, v := range treeVectors(t) {
		in, want := unhex(t, v.In), unhex(t, v.Out)
		if kinds[v.Kind] == nil {
			kinds[v.Kind] = map[int32]bool{}
		}
		for _, p := range v.Protocols {
			kinds[v.Kind][p] = true
			kept := bytes.Clone(in)
			got, how := table.Splice(&user{}, p, []byte("before"), in)
			if !bytes.Equal(in, kept) {
				t.Fatalf("%s in %d: the body was changed", v.Kind, p)
			}
			got, ok := bytes.CutPrefix(got, []byte("before"))
			wantHow := map[string]Outcome{"parsers": Changed, "late": Changed | Replaced, "rivals": Changed | Replaced, "bare": Changed, "vanilla": Changed, "wrapped": Changed | Unwrapped | Replaced}[v.Kind]
			if !ok || how != wantHow {
				t.Errorf("%s in %d: outcome %b, want %b", v.Kind, p, how, wantHow)
			}
			if v.Kind != "vanilla" && !bytes.Equal(got, want) {
				t.Errorf("%s in %d:\nhave %x\nwant %x", v.Kind, p, got, want)
			}
			if v.Kind == "wrapped" {
				continue
			}
			before, err := decode(p, in)
			if err != nil {
				t.Fatalf("%s in %d: vector: %v", v.Kind, p, err)
			}
			after, err := decode(p, got)
			if err == nil {
				err = checkSplice(before, after, allNames)
			}
			if err != nil {
				t.Errorf("%s in %d: %v", v.Kind, p, err)
			}
		}
	}
	for _, ver := range proto.Supported() {
		_, has := ver.ID(proto.Play, proto.Clientbound, proto.DeclareCommands)
		for _, kind := range []string{"parsers", "rivals", "late", "bare", "wrapped"} {
			if kinds[kind][ver.Protocol] != has {
				t.Errorf("%s: version %d has command trees: %v, vectors: %v", kind, ver.Protocol, has, !has)
			}
		}
		if has != (grammarOf(ver.Protocol) != nil) {
			t.Errorf("version %d has command trees: %v", ver.Protocol, has)
		}
	}
	if len(kinds["vanilla"]) < 8 {
		t.Errorf("only %d of the game's own trees", len(kinds["vanilla"]))
	}
}

// Our table of parsers against the definitions of another implementation.
func TestParsers(t *testing.T) {
	names := map[string]shape{"nothing": nothing, "oneByte": oneByte, "varInt": varInt, "fourByte": fourByte, "ident": ident, "bounds4": bounds4, "bounds8": bounds8}
	for p, shapes := range shapesByProtocol() {
		g := grammarOf(p)
		for id, want := range shapes {
			var got shape
			if p < 759 {
				s, ok := g.byName[id]
				if !ok {
					t.Errorf("%d lacks %s", p, id)
				}
				got = s
			} else if n, _ := strconv.Atoi(id); n < len(g.byNumber) {
				got = g.byNumber[n]
			}
			if w, ok := names[want]; !ok || got != w {
				t.Errorf("%d: parser %s is of shape %d, want %s", p, id, got, want)
			}
		}
		if p >= 759 && len(g.byNumber) != len(shapes) {
			t.Errorf("%d has %d parsers, want %d", p, len(g.byNumber), len(shapes))
		}
	}
}

func vectorOf(t testing.TB, kind string, protocol int32) []byte {
	t.Helper()
	for _, v := range treeVectors(t) {
		if v.Kind == kind && slices.Contains(v.Protocols, protocol) {
			return unhex(t, v.In)
		}
	}
	t.Fatalf("no %s tree of %d", kind, protocol)
	return nil
}

// A player's tree has the commands that they may use, and the backend's where they may not.
func TestSplicePermissions(t *testing.T) {
	table := testTable(t)
	in := vectorOf(t, "rivals", 765)
	before, _ := decode(765, in)
	out, _ := table.Splice(&user{denied: []string{"server", "send"}}, 765, nil, in)
	after, err := decode(765, out)
	if err == nil {
		err = checkSplice(before, after, allNames[2:])
	}
	if err != nil {
		t.Error(err)
	}
	again, _ := table.Splice(&user{}, 765, nil, in)
	if after, err = decode(765, again); err == nil {
		err = checkSplice(before, after, allNames)
	}
	if err != nil {
		t.Errorf("after somebody with fewer: %v", err)
	}
}

// A permission of a part is enough for the command to be in the tree.
func TestSpliceParts(t *testing.T) {
	parted := commands()
	parted[0].Parts = []string{"server.part"}
	table, err := New(directory{}, nil, parted...)
	if err != nil {
		t.Fatal(err)
	}
	in := vectorOf(t, "rivals", 765)
	before, _ := decode(765, in)
	for names, denied := range map[int][]string{0: {"server"}, 1: {"server", "server.part"}} {
		out, _ := table.Splice(&user{denied: denied}, 765, nil, in)
		after, err := decode(765, out)
		if err == nil {
			err = checkSplice(before, after, allNames[names:])
		}
		if err != nil {
			t.Errorf("without %v: %v", denied, err)
		}
	}
}

// Nothing to do: the packet passes as it is.
func TestSpliceNothing(t *testing.T) {
	table, err := New[*user](directory{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []int32{393, 775} {
		if out, how := table.Splice(&user{}, p, nil, vectorOf(t, "rivals", p)); out != nil || how != 0 {
			t.Errorf("%d: %x %b", p, out, how)
		}
		if out, how := Unwrap(p, nil, vectorOf(t, "rivals", p)); out != nil || how != 0 {
			t.Errorf("%d: %x %b", p, out, how)
		}
		bare, how := Unwrap(p, nil, vectorOf(t, "wrapped", p))
		if how != Changed|Unwrapped || bytes.Contains(bare, grammarOf(p).marker) {
			t.Errorf("%d: unwrapped to %x, %b", p, bare, how)
		}
	}
}

// tree775 builds a tree of 775 by hand: nodes, then the root index.
func tree775(root int32, nodes ...[]byte) []byte {
	b := field.AppendVarInt(nil, int32(len(nodes)))
	for _, n := range nodes {
		b = append(b, n...)
	}
	return field.AppendVarInt(b, root)
}

func nodeOf(flags byte, children ...int32) []byte {
	b := field.AppendVarInt([]byte{flags}, int32(len(children)))
	for _, c := range children {
		b = field.AppendVarInt(b, c)
	}
	return b
}

func lit(name string, children ...int32) []byte {
	return field.AppendString(nodeOf(typeLiteral|executable, children...), name)
}

func arg(name string, parser int32, rest ...byte) []byte {
	return append(field.AppendVarInt(field.AppendString(nodeOf(typeArgument), name), parser), rest...)
}

// A mod's parser that nobody wrapped: the walk ends there, the tree lives on.
func TestSpliceUnknownParser(t *testing.T) {
	table := testTable(t)
	modded := []byte{1, 2, 3, 4} // properties whose length only the mod knows

	// The root's children come first, as servers write them: the argument behind them is never met.
	in := tree775(0, nodeOf(0, 1, 2), lit("server", 3), lit("x"), arg("a", 200, modded...))
	out, how := table.Splice(&user{}, 775, nil, in)
	if how != Changed|Replaced || !bytes.Contains(out, arg("a", 200, modded...)) {
		t.Errorf("%b %x", how, out)
	}
	if children := nodeOf(0, 2, 4, 6, 8, 9, 11, 13, 15, 16, 17); !bytes.HasPrefix(out[1:], children) {
		t.Errorf("root %x, want %x", out[1:], children)
	}

	// It stands before a literal of ours: both stay, ours behind.
	in = tree775(0, nodeOf(0, 1, 2), arg("a", 200, modded...), lit("server"))
	out, how = table.Splice(&user{}, 775, nil, in)
	if how != Changed|Blind {
		t.Errorf("%b", how)
	}
	if children := nodeOf(0, 1, 2, 3, 5, 7, 8, 10, 12, 14, 15, 16); !bytes.HasPrefix(out[1:], children) {
		t.Errorf("root %x, want %x", out[1:], children)
	}
	if !bytes.Contains(out, in[len(in)-len(lit("server"))-len(arg("a", 200, modded...))-1:len(in)-1]) {
		t.Errorf("the backend's nodes changed: %x", out)
	}

	// Where the root is cannot be told: the packet passes.
	in = tree775(1, arg("a", 200, modded...), nodeOf(0, 2), lit("server"))
	if out, how = table.Splice(&user{}, 775, nil, in); out != nil || how != Refused {
		t.Errorf("%b %x", how, out)
	}

	// Wrappers behind it are taken off all the same.
	in = tree775(0, nodeOf(0, 1, 2, 3), arg("a", 200, modded...), arg("b", wrapperID, 44, 2, 8, 9), arg("c", wrapperID, 45, 0))
	out, how = table.Splice(&user{}, 775, nil, in)
	if how != Changed|Unwrapped|Blind || bytes.Contains(out, grammarOf(775).marker) ||
		!bytes.Contains(out, slices.Concat(arg("a", 200, modded...), arg("b", 44, 8, 9), arg("c", 45))) {
		t.Errorf("%b %x", how, out)
	}
}

// The marker's bytes in a place that is no wrapper mean nothing.
func TestSpliceFalseMarker(t *testing.T) {
	in := tree775(0, nodeOf(0, 1), lit("x", 2), arg("n", 4, 3, 0x80, 0xfe, 0xff, 0xff, 0x0f, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 9))
	before, err := decode(775, in)
	if err != nil {
		t.Fatal(err)
	}
	if out, how := Unwrap(775, nil, in); out != nil || how != 0 {
		t.Errorf("%b %x", how, out)
	}
	out, how := testTable(t).Splice(&user{}, 775, nil, in)
	after, err := decode(775, out)
	if err == nil {
		err = checkSplice(before, after, allNames)
	}
	if err != nil || how != Changed {
		t.Errorf("%b %v", how, err)
	}
}

// Broken packets pass, and cost nothing but their length.
func TestSpliceBroken(t *testing.T) {
	table := testTable(t)
	for name, in := range map[string][]byte{
		"empty":              {},
		"no nodes":           {0, 0},
		"count alone":        {5},
		"huge count":         {255, 255, 255, 255, 7, 0, 0, 0},
		"negative count":     {255, 255, 255, 255, 15, 0, 0, 0},
		"huge child count":   {1, 0, 255, 255, 255, 255, 7, 0},
		"root out of range":  tree775(7, nodeOf(0)),
		"root is a literal":  tree775(1, nodeOf(0), lit("x")),
		"no root index":      {1, 0, 0},
		"type 3":             tree775(1, nodeOf(3), nodeOf(0)),
		"bytes behind":       append(tree775(1, lit("x"), nodeOf(0)), 9),
		"wrapper cut short":  tree775(0, nodeOf(0, 1), arg("b", wrapperID, 44, 200))[:12],
		"unsupported number": nil,
	} {
		protocol := int32(775)
		if in == nil {
			protocol, in = proto.Max+1, tree775(0, nodeOf(0))
		}
		if out, how := table.Splice(&user{}, protocol, nil, in); out != nil || how&Refused == 0 {
			t.Errorf("%s: %b %x", name, how, out)
		}
	}
	// A child twice among the root's, and one that does not exist.
	in := tree775(0, nodeOf(0, 1, 1, 99), lit("hub"))
	out, how := table.Splice(&user{}, 775, nil, in)
	if want := nodeOf(0, 99, 2, 4, 6, 7, 9, 11, 13, 14, 15); how != Changed|Replaced || !bytes.HasPrefix(out[1:], want) {
		t.Errorf("%b %x", how, out)
	}
}

// 100 KiB of tree cost one copy: the result, the set of the root's children, and what a literal of the same name costs.
func TestSpliceAllocations(t *testing.T) {
	table, u := testTable(t), &user{}
	in := bigTree(100 << 10)
	dst := make([]byte, 0, len(in)+4096)
	if n := testing.AllocsPerRun(50, func() { table.Splice(u, 775, dst, in) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
	vanilla := vectorOf(t, "vanilla", 775)
	dst = make([]byte, 0, len(vanilla)+4096)
	if n := testing.AllocsPerRun(50, func() { table.Splice(u, 775, dst, vanilla) }); n > 1 {
		t.Errorf("%v allocations for the game's own tree", n)
	}
}

// bigTree returns a tree of 775 with 300 commands and as many arguments as it takes to be size bytes long.
func bigTree(size int) []byte {
	const commands = 300
	kids := make([]int32, commands)
	nodes := [][]byte{nil}
	for i := range kids {
		kids[i] = int32(i + 1)
		nodes = append(nodes, lit(fmt.Sprintf("command%d", i), int32(commands+1)))
	}
	nodes[0] = nodeOf(0, kids...)
	for n := 0; n < size; n += len(nodes[len(nodes)-1]) {
		nodes = append(nodes, arg("argument", 6, 1))
	}
	return tree775(0, nodes...)
}

func FuzzSplice(f *testing.F) {
	for _, v := range treeVectors(f) {
		if v.Kind != "vanilla" {
			for _, p := range v.Protocols {
				f.Add(unhex(f, v.In), uint8(slices.IndexFunc(proto.Supported(), func(x *proto.Version) bool { return x.Protocol == p })))
			}
		}
	}
	table := testTable(f)
	f.Fuzz(func(t *testing.T, in []byte, version uint8) {
		p := proto.Supported()[int(version)%len(proto.Supported())].Protocol
		out, how := table.Splice(&user{}, p, nil, in)
		if (out != nil) != (how&Changed != 0) || len(out) > len(in)+1000 {
			t.Fatalf("%b: %d bytes from %d", how, len(out), len(in))
		}
		if p < proto.V1_13 {
			return
		}
		before, err := decode(p, in)
		if err != nil {
			return
		}
		if before.nodes[before.root].flags&3 != 0 {
			if how != Refused {
				t.Fatalf("%b for a root of another type", how)
			}
			return
		}
		after, err := decode(p, out)
		if err == nil {
			err = checkSplice(before, after, allNames)
		}
		if err != nil || how&(Blind|Refused|Unwrapped) != 0 {
			t.Fatalf("%b: %v\nin  %x\nout %x", how, err, in, out)
		}
	})
}

func BenchmarkSplice(b *testing.B) {
	table, u := testTable(b), &user{}
	for name, in := range map[string][]byte{"100KiB": bigTree(100 << 10), "vanilla": vectorOf(b, "vanilla", 775)} {
		dst := make([]byte, 0, len(in)+4096)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				table.Splice(u, 775, dst, in)
			}
		})
		b.Run(name+"-copy", func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				_ = append(dst, in...)
			}
		})
	}
}
