package configs

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// texts reads the folder of languages: a file de.yml, or de_at.yml, has the texts of that language by their keys. A
// missing folder has no language.
func (l *Loaded) texts(p *problems, dir string) {
	if l.Languages == "" {
		return
	}
	folder := under(dir, l.Languages)
	l.Files = append(l.Files, folder)
	files, err := os.ReadDir(folder)
	if os.IsNotExist(err) && l.Languages == Default().Languages {
		return
	} else if err != nil {
		p.bad("languages", "cannot read the folder: %w", err)
		return
	}
	l.Texts, l.languages = map[string]map[string]string{}, map[string]*source{}
	for _, f := range files {
		tag, ours := strings.CutSuffix(f.Name(), ".yml")
		if !ours || strings.HasPrefix(tag, ".") { // an editor's copies
			continue
		}
		name := filepath.Join(folder, f.Name())
		l.Files = append(l.Files, name)
		text, err := os.ReadFile(name)
		if err != nil {
			p.add(fmt.Errorf("cannot read the language: %w", err), "")
			continue
		}
		of := &problems{src: &source{name: name, root: reflect.TypeFor[map[string]string]()}}
		if err := of.src.parse(text); err != nil {
			p.add(err, "")
			continue
		}
		l.languages[tag] = of.src
		l.Texts[tag] = read(of, text, func() map[string]string { return map[string]string{} })
		p.all = append(p.all, of.all...)
	}
}
