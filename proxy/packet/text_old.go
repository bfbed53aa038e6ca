package packet

import (
	"fmt"
	"maps"
	"strings"
)

// gameWords has the game's English for keys that clients before 1.12 do not know: they would show the key.
var gameWords = map[string]string{
	"multiplayer.disconnect.authservers_down":    "Authentication servers are down. Please try again later, sorry!",
	"multiplayer.disconnect.duplicate_login":     "You logged in from another location",
	"multiplayer.disconnect.outdated_client":     "Outdated client! Please use %s",
	"multiplayer.disconnect.outdated_server":     "Outdated server! I'm still on %s",
	"multiplayer.disconnect.server_shutdown":     "Server closed",
	"multiplayer.disconnect.slow_login":          "Took too long to log in",
	"multiplayer.disconnect.unverified_username": "Failed to verify username!",
}

// inWords returns a tree of ours without keys of gameWords.
func inWords(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = inWords(e)
		}
		return out
	case map[string]any:
		out := maps.Clone(v)
		if extra, ok := v["extra"].([]any); ok {
			out["extra"] = inWords(extra)
		}
		key, _ := v["translate"].(string)
		if words, ok := gameWords[key]; ok {
			with, _ := v["with"].([]any)
			for _, w := range with {
				words = strings.Replace(words, "%s", fmt.Sprint(w), 1)
			}
			delete(out, "translate")
			delete(out, "with")
			out["text"] = words
		}
		return out
	}
	return v
}
