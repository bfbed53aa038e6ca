package configs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
)

// texts reads the folder of languages: a file de.yml, or de_at.yml, has the texts of that language by their keys. A folder
// that is not there is no language.
func (l *Loaded) texts(dir string) error {
	if l.Languages == "" {
		return nil
	}
	folder := under(dir, l.Languages)
	l.Files = append(l.Files, folder)
	files, err := os.ReadDir(folder)
	if os.IsNotExist(err) && l.Languages == Default().Languages {
		return nil
	} else if err != nil {
		return fmt.Errorf("languages: cannot read the folder: %w", err)
	}
	l.Texts = map[string]map[string]string{}
	for _, f := range files {
		tag, ours := strings.CutSuffix(f.Name(), ".yml")
		if !ours || strings.HasPrefix(tag, ".") { // an editor's copies
			continue
		}
		name := filepath.Join(folder, f.Name())
		l.Files = append(l.Files, name)
		text, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("cannot read the language: %w", err)
		}
		of := map[string]string{}
		if err := yaml.Unmarshal(text, &of); err != nil {
			return (&source{name: name}).explain(err)
		}
		l.Texts[tag] = of
	}
	return nil
}
