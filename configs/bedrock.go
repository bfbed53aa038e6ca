package configs

import (
	"fmt"
	"os"
	"strings"
)

// Bedrock is about players of Bedrock Edition, for whom Geyser translates in front of Earshot.
type Bedrock struct {
	KeyFile string   `yaml:"key-file"` // Floodgate's key.pem; empty: they are refused
	Trusted []string `yaml:"trusted"`  // networks that Geyser connects from
	Prefix  string   `yaml:"prefix"`   // of their names
}

// checkBedrock is the part of check about them.
func (l *Loaded) checkBedrock(bad func(key, format string, args ...any)) (warnings []string) {
	b := &l.Bedrock
	trusted, err := Prefixes(b.Trusted)
	if err != nil {
		bad("bedrock.trusted", "%w", err)
	}
	if len(b.Prefix) > 15 || strings.IndexFunc(b.Prefix, func(c rune) bool { return c <= ' ' || c >= 0x7f }) >= 0 {
		bad("bedrock.prefix", "%q is no beginning of a name: at most 15 letters, digits and punctuation marks, without spaces", b.Prefix)
	}
	if b.KeyFile == "" {
		for name, s := range l.Servers {
			if s.Floodgate {
				bad("servers."+name+".floodgate", "there is nothing to pass on without bedrock.key-file")
			}
		}
		return nil
	}
	if len(b.Trusted) == 0 {
		bad("bedrock.trusted", "nobody of Bedrock Edition could join: name Geyser's address")
	}
	if _, err := os.Stat(b.KeyFile); err != nil {
		bad("bedrock.key-file", "cannot read the key: %w", err)
	} else if w := readable(b.KeyFile, "the key"); w != "" {
		warnings = append(warnings, w)
	}
	if !strings.ContainsFunc(b.Prefix, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_')
	}) {
		warnings = append(warnings, fmt.Sprintf("bedrock.prefix %q: players of Bedrock Edition can have the names of Java accounts that are not theirs; a prefix such as . keeps them apart", b.Prefix))
	}
	if w := trust("bedrock.trusted", trusted); w != "" {
		warnings = append(warnings, w)
	}
	return warnings
}
