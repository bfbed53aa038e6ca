package configs

import (
	"fmt"
	"os"
	"strings"
)

// Bedrock holds the settings for players of Bedrock Edition; Geyser translates for them in front of Earshot.
type Bedrock struct {
	KeyFile string   `yaml:"key-file"` // Floodgate's key.pem; empty: they are refused
	Trusted []string `yaml:"trusted"`  // networks that Geyser connects from
	Prefix  string   `yaml:"prefix"`   // of their names
}

// checkBedrock checks them.
func (l *Loaded) checkBedrock(p *problems) {
	b := &l.Bedrock
	trusted, err := Prefixes(b.Trusted)
	if err != nil {
		p.bad("bedrock.trusted", "%w", err)
	}
	if len(b.Prefix) > 15 || strings.IndexFunc(b.Prefix, func(c rune) bool { return c <= ' ' || c >= 0x7f }) >= 0 {
		p.bad("bedrock.prefix", "%q is no beginning of a name: at most 15 letters, digits and punctuation marks, without spaces", b.Prefix)
	}
	if b.KeyFile == "" {
		for name, s := range l.Servers {
			if s.Floodgate {
				p.bad("servers."+name+".floodgate", "there is nothing to pass on without bedrock.key-file")
			}
		}
		return
	}
	if len(b.Trusted) == 0 {
		p.bad("bedrock.trusted", "nobody of Bedrock Edition could join: name Geyser's address")
	}
	if _, err := os.Stat(b.KeyFile); err != nil {
		p.bad("bedrock.key-file", "cannot read the key: %w", err)
	} else {
		p.warn(readable(b.KeyFile, "the key"))
	}
	if !strings.ContainsFunc(b.Prefix, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_')
	}) {
		p.warn(fmt.Sprintf("bedrock.prefix %q: players of Bedrock Edition can have the names of Java accounts that are not theirs; a prefix such as . keeps them apart", b.Prefix))
	}
	p.warn(trust("bedrock.trusted", trusted))
}
