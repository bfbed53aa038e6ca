package main

import (
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/earshot-mc/earshot/bridge/network"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/handshake/upgrade"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// banner says where to join, where voice is, and what is unsafe. It does so at every start, at every log level, and in
// the form of the log where machines read it.
func banner(w io.Writer, dir string, is network.Facts) {
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

	from := "none: there is no " + configs.FileName + " in " + absolute(dir) + ", so these are the defaults"
	if conf.File != "" {
		from = absolute(conf.File)
	}

	remote := "" // there is no RCON
	if is.RCON != nil {
		remote = is.RCON.String()
	}
	if conf.Log.Format == "json" {
		log, as := newLogs(w, false, false)
		as.apply(configs.Log{Level: "info", Format: "json"})
		log.Info("running", "version", release(), "sounds", network.Sounds(), "join", where, "minecraft", span, "voice", sockets, "players_go_to", conf.Try, "rcon", remote, "settings", from)
		for _, s := range network.Unsafe(conf) {
			log.Warn("unsafe", "why", s)
		}
		for _, s := range conf.Notes {
			log.Warn("note", "what", s)
		}
		return
	}
	fmt.Fprintf(w, "Earshot %s\n  join    %s with Minecraft %s\n  voice   %s\n", release(), where, span, sockets)
	if remote != "" {
		fmt.Fprintf(w, "  rcon    %s\n", remote)
	}
	fmt.Fprintf(w, "  sounds  %s\n  players go to %s\n  settings %s\n", network.Sounds(), strings.Join(conf.Try, ", then "), from)
	for _, s := range network.Unsafe(conf) {
		fmt.Fprintln(w, "  UNSAFE ", s)
	}
	for _, s := range conf.Notes {
		fmt.Fprintln(w, "  NOTE   ", s)
	}
}
