package configs

import (
	"net"
	"net/netip"
)

// RCON holds how tools give commands over the network.
type RCON struct {
	Address      string `yaml:"address"` // host:port; empty: off. See [RCON.Listen]
	Password     Secret `yaml:"password"`
	PasswordFile string `yaml:"password-file"`
}

// Listen returns where to listen, as host:port; empty: nowhere. An address without a host is that of this machine
// alone.
func (r *RCON) Listen() string {
	if host, port, err := net.SplitHostPort(r.Address); err == nil && host == "" {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return r.Address
}

// shortPassword bounds passwords that can be guessed, in characters.
const shortPassword = 8

// longPassword bounds a password in a packet of RCON.
const longPassword = 1024

// checkRCON checks the section.
func (l *Loaded) checkRCON(p *problems) {
	r := &l.RCON
	if r.Address == "" {
		return
	}
	p.address("rcon.address", r.Address)
	switch n := len(r.Password); {
	case n == 0:
		p.bad("rcon", "has no password, and anybody could give commands: set rcon.password-file, or rcon.password")
	case n > longPassword:
		p.bad("rcon.password", "has %d bytes: at most %d", n, longPassword)
	case n < shortPassword:
		p.warn("rcon.password is short, and can be guessed: take 16 letters and digits by chance")
	}
	host, _, err := net.SplitHostPort(r.Listen())
	if err != nil || host == "localhost" {
		return
	}
	if at, err := netip.ParseAddr(host); err != nil || !at.IsLoopback() {
		p.warn("rcon.address is not of this machine alone: RCON sends the password and all commands unencrypted, and whoever listens on the way has both; use 127.0.0.1 and a tunnel")
	}
}
