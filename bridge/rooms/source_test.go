package rooms

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/bridge/rooms/frame"
)

// words are the frame package's constants of kinds of frames, by their names there.
var words = map[string]string{
	"Join": frame.Join, "Ack": frame.Ack, "Chat": frame.Chat, "Ping": frame.Ping, "Moderate": frame.Moderate, "Leave": frame.Leave, "Welcome": frame.Welcome, "Baseline": frame.Baseline,
	"Snapshot": frame.Snapshot, "State": frame.State, "Social": frame.Social, "Left": frame.Left, "Remove": frame.Remove, "Notice": frame.Notice, "Error": frame.Error,
}

// TestRooms20Source: item 20. The kinds of frames that the room takes and writes are those of the spec: a kind too many
// in either fails here.
func TestRooms20Source(t *testing.T) {
	takes, writes := map[string]bool{}, map[string]bool{}
	files, _ := filepath.Glob("*.go")
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		of := func(e ast.Expr) string {
			sel, ok := e.(*ast.SelectorExpr)
			if !ok {
				return ""
			}
			if x, ok := sel.X.(*ast.Ident); !ok || x.Name != "frame" {
				return ""
			}
			return sel.Sel.Name
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SwitchStmt:
					if sel, ok := n.Tag.(*ast.SelectorExpr); !ok || sel.Sel.Name != "Type" || fn.Name.Name != "handle" {
						return true
					}
					for _, c := range n.Body.List {
						for _, e := range c.(*ast.CaseClause).List {
							takes[words[of(e)]] = true
						}
					}
				case *ast.CallExpr:
					switch name := of(n.Fun); {
					case name == "AppendSaid":
						writes[words[of(n.Args[1])]] = true
					case name == "AppendStateHead":
						writes[frame.State] = true
					case strings.HasPrefix(name, "Append"):
						writes[words[strings.TrimPrefix(name, "Append")]] = true
					}
				}
				return true
			})
		}
	}
	spec := frame.TheSpec()
	for what, c := range map[string]struct {
		got  map[string]bool
		want []frame.Frame
	}{"takes": {takes, spec.Frames.ClientToServer}, "writes": {writes, spec.Frames.ServerToClient}} {
		var want []string
		for _, f := range c.want {
			want = append(want, f.Type)
		}
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(c.got)); !slices.Equal(got, want) {
			t.Errorf("the room %s %q, the spec says %q", what, got, want)
		}
	}
}
