package network

import (
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/earshot-mc/earshot/bridge/journal"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/handshake/upgrade"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// Banner says where to join, where voice is, and what is unsafe. It does so at every start, at every log level, and in
// the form of the log where machines read it. version is that of the program, dir the data folder.
func (is Facts) Banner(w io.Writer, version, dir string) {
	conf, addr := is.Config, is.Addr
	host := addr.IP.String()
	if addr.IP.IsUnspecified() {
		host = "localhost"
	}
	where := net.JoinHostPort(host, fmt.Sprint(addr.Port))
	span := strings.Replace(proto.Span(), "-", " to ", 1)
	scheme := "ws"
	if is.TLS {
		scheme = "wss"
	}
	sockets := fmt.Sprintf("%s://%s%s, the same port", scheme, where, upgrade.Path)
	switch {
	case !conf.Voice.Enabled:
		sockets = "off (voice.enabled)"
	case is.Public != "":
		sockets = fmt.Sprintf("%s%s, which must lead to %s", is.Public, upgrade.Path, where)
	}

	from := "none: there is no " + configs.FileName + " in " + configs.Absolute(dir) + ", so these are the defaults"
	if conf.File != "" {
		from = configs.Absolute(conf.File)
	}

	remote := "" // there is no RCON
	if is.RCON != nil {
		remote = is.RCON.String()
	}
	if conf.Log.Format == "json" {
		log, form := journal.New(w, false, false)
		form.Set("info", "json")
		log.Info("running", "version", version, "sounds", Sounds(), "join", where, "minecraft", span, "voice", sockets, "players_go_to", conf.Try, "rcon", remote, "settings", from)
		for _, s := range Unsafe(conf) {
			log.Warn("unsafe", "why", s)
		}
		for _, s := range conf.Notes {
			log.Warn("note", "what", s)
		}
		return
	}
	fmt.Fprintf(w, "Earshot %s\n  join    %s with Minecraft %s\n  voice   %s\n", version, where, span, sockets)
	if remote != "" {
		fmt.Fprintf(w, "  rcon    %s\n", remote)
	}
	fmt.Fprintf(w, "  sounds  %s\n  players go to %s\n  settings %s\n", Sounds(), strings.Join(conf.Try, ", then "), from)
	for _, s := range Unsafe(conf) {
		fmt.Fprintln(w, "  UNSAFE ", s)
	}
	for _, s := range conf.Notes {
		fmt.Fprintln(w, "  NOTE   ", s)
	}
}
