package peer

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// Geyser returns the host field with which Geyser connects to host for a player of Bedrock Edition. No Geyser can be
// had here: floodgate.js makes the data with node's crypto. Fields are name, xuid, ip, linked and so on, see there.
func Geyser(t testing.TB, host string, key []byte, fields map[string]string) string {
	t.Helper()
	arg, err := json.Marshal(map[string]any{"key": fmt.Sprintf("%x", key), "player": fields})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "floodgate.js", string(arg))
	cmd.Dir = scripts(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("floodgate.js: %v", err)
	}
	return host + "\x00" + strings.TrimSpace(string(out))
}
