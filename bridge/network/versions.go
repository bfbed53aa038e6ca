package network

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"

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
