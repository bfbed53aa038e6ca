package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/earshot-mc/earshot/bridge/network"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// listVersions prints for `earshot versions`: all versions, one of them as a file to begin another one with (the file's
// name gives the number), or the traits.
func listVersions(w io.Writer, what, dir string) error {
	if what == "traits" { // errors in files send people here
		for _, t := range proto.Traits() {
			fmt.Fprintf(w, "%-28s  %s\n", t, t.About())
		}
		return nil
	}
	l, err := configs.LoadVersions(dir)
	if err != nil {
		return err
	}
	all, err := network.Versions(l)
	if err != nil {
		return err
	}
	proto.Use(all...)
	if what == "" {
		files := map[int32]string{}
		for _, f := range l.Versions {
			files[int32(f.Protocol)] = f.File
		}
		for _, v := range proto.Supported() {
			from := "built in"
			if f, ok := files[v.Protocol]; ok {
				from = fmt.Sprintf("%s, like %d", f, v.Like)
			}
			fmt.Fprintf(w, "%-10d  %-24s  %s\n", v.Protocol, strings.Join(v.Names, ", "), from)
		}
		return nil
	}
	n, err := strconv.ParseInt(what, 10, 32)
	v := proto.Lookup(int32(n))
	if err != nil || v == nil {
		return fmt.Errorf("%q is no protocol number that is known; earshot versions lists them", what)
	}
	d := v.Describe()
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(struct {
		Names      []string                    `json:"names"`
		Like       int32                       `json:"like"`
		Packets    map[string]map[string]int32 `json:"packets"`
		Traits     map[string]bool             `json:"traits"`
		Parsers    []string                    `json:"parsers,omitempty"`
		PlayerType int32                       `json:"player-type,omitempty"`
	}{d.Names, d.Like, d.Packets, d.Traits, d.Parsers, d.PlayerType})
}
