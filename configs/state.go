package configs

import (
	"net/url"
	"os"
	"strings"
)

// State says where lasting state is kept: mutes, persistent groups, speakers and declarations.
type State struct {
	URL             URLs   `yaml:"url"`              // of an existing NATS with JetStream, or several; empty: none
	CredentialsFile string `yaml:"credentials-file"` // of a NATS user
	User            string `yaml:"user"`
	Password        Secret `yaml:"password"`
	PasswordFile    string `yaml:"password-file"`
	Token           Secret `yaml:"token"`
	TokenFile       string `yaml:"token-file"`
	RootCA          string `yaml:"root-ca"`     // file
	Certificate     string `yaml:"certificate"` // files of our own, where the server asks for one
	Key             string `yaml:"key"`
	Replicas        int    `yaml:"replicas"` // of each record in a cluster
	Names           int    `yaml:"names"`    // remembered players who were here; 0: none
}

// maxNames bounds the memory for names.
const maxNames = 1_000_000

// URLs are addresses, separated by commas. They may have users and passwords in them, which never print.
type URLs string

// String hides users and passwords.
func (s URLs) String() string {
	if s == "" {
		return ""
	}
	var all []string
	for raw := range strings.SplitSeq(string(s), ",") {
		u, err := url.Parse(strings.TrimSpace(raw))
		if err != nil || u.Host == "" {
			return hidden // nobody knows its contents
		}
		if u.User != nil {
			u.User = url.User("hidden")
		}
		all = append(all, u.String())
	}
	return strings.Join(all, ",")
}

// GoString hides users and passwords from %#v.
func (s URLs) GoString() string { return s.String() }

// MarshalYAML hides users and passwords.
func (s URLs) MarshalYAML() (any, error) { return s.String(), nil }

// checkState checks the section. It does not show a URL that cannot be read: it may be a password.
func (l *Loaded) checkState(p *problems) {
	s := &l.State
	if s.URL != "" {
		for raw := range strings.SplitSeq(string(s.URL), ",") {
			u, err := url.Parse(strings.TrimSpace(raw))
			if err != nil || u.Hostname() == "" || (u.Scheme != "nats" && u.Scheme != "tls" && u.Scheme != "ws" && u.Scheme != "wss") {
				p.bad("state.url", "is no URL of a NATS server: write nats://host:4222, tls://host:4222, or several of them separated by commas")
			}
		}
	} else if s.CredentialsFile != "" || s.User != "" || s.Password != "" || s.Token != "" || s.RootCA != "" || s.Certificate != "" {
		p.bad("state", "says how to log in, but not where: add url: nats://host:4222")
	}
	if s.Password != "" && s.User == "" {
		p.bad("state.password", "is of no user: add user")
	}
	if (s.Certificate == "") != (s.Key == "") {
		p.bad("state", "needs both certificate and key")
	}
	for key, file := range map[string]string{"credentials-file": s.CredentialsFile, "root-ca": s.RootCA, "certificate": s.Certificate, "key": s.Key} {
		if file != "" {
			if _, err := os.Stat(file); err != nil {
				p.bad("state."+key, "cannot be used: %w", err)
			}
		}
	}
	if s.Names < 0 || s.Names > maxNames {
		p.bad("state.names", "%d: 0 (none) to %d", s.Names, maxNames)
	}
	if s.Replicas < 1 || s.Replicas > 5 {
		p.bad("state.replicas", "%d: 1 to 5", s.Replicas)
	}
}
