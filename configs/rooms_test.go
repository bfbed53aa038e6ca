package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDeclaredRooms: mistakes say what to write, what is open to all is warned of, and a token comes from its file.
func TestDeclaredRooms(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"token": "a token that is long\n", "empty": "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func(rooms string) (*Loaded, error) {
		return Load("", dir, []string{Prefix + "ROOMS_DECLARED=" + rooms})
	}
	for rooms, want := range map[string]string{
		"{Bad Name: {}}": "is no name for a room", "{a: {capacity: 501}}": "is not between 1 and 500", "{a: {capacity: -1}}": "is not between 1 and 500",
		"{a: {token-file: nowhere}}": "cannot read the secret", "{a: {token-file: " + filepath.Join(dir, "empty") + "}}": "would be open to everybody",
		"{a: {token: " + strings.Repeat("a", 257) + "}}": "has 257 bytes: at most 256",
	} {
		if _, err := load(rooms); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", rooms, err, want)
		}
	}
	for rooms, want := range map[string]string{
		"{a: {}}": "is open to everybody who reaches the port", "{a: {token: short}}": "can be guessed", "{a: {token-file: " + filepath.Join(dir, "token") + "}}": "",
	} {
		l, err := load(rooms)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(l.Warnings, "\n"); (want == "") != !strings.Contains(got, "rooms.declared") || !strings.Contains(got, want) {
			t.Errorf("%s: warnings %q, want %q", rooms, got, want)
		}
		if r := l.Rooms.Declared["a"]; r.Peers() != 50 || want == "" && r.Token != "a token that is long" {
			t.Errorf("%s: %d peers, the token %d bytes", rooms, r.Peers(), len(r.Token))
		}
	}
}
