package network

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// Versions makes the versions that the files of the folder versions describe.
func Versions(l *configs.Loaded) (all []*proto.Version, err error) {
	var wrong []error
	for _, f := range l.Versions {
		v, err := proto.Describe(proto.Description{
			Protocol: int32(f.Protocol), Names: f.Names, Like: int32(f.Like), Packets: f.IDs, Report: f.Report, Traits: f.Traits,
			Parsers: f.Parsers, PlayerType: int32(f.PlayerType),
		})
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", f.File, err))
			continue
		}
		all = append(all, v)
	}
	return all, errors.Join(wrong...)
}

// redescribed names the files of versions that are new, gone or changed.
func redescribed(from, to *configs.Loaded) (all []string) {
	was := map[string]*configs.Version{}
	for _, v := range from.Versions {
		was[v.File] = v
	}
	name := func(v *configs.Version) string { return filepath.Join(configs.VersionsName, filepath.Base(v.File)) }
	for _, v := range to.Versions {
		switch old := was[v.File]; {
		case old == nil:
			all = append(all, name(v)+": added")
		case !reflect.DeepEqual(old, v):
			all = append(all, name(v)+": the file has changed")
		}
		delete(was, v.File)
	}
	for _, v := range from.Versions {
		if was[v.File] != nil {
			all = append(all, name(v)+": removed")
		}
	}
	return all
}

// ListVersions prints for `earshot versions`: all versions, one of them as a file to begin another one with (the file's
// name gives the number), or the traits.
func ListVersions(w io.Writer, what, dir string) error {
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
	all, err := Versions(l)
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
