package status

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image/png"
	"os"
	"strings"
)

const (
	iconSide  = 64
	iconURI   = "data:image/png;base64,"
	maxIconKB = 22 // of PNG: as base64 it must leave room for the rest of the status
)

// LoadIcon returns the icon named by source, a PNG file of 64 by 64 pixels or a data URI of one, as the data URI that
// goes into the status. An empty source is no icon.
func LoadIcon(source string) (string, error) {
	if source == "" {
		return "", nil
	}
	name := "status icon"
	var raw []byte
	if data, ok := strings.CutPrefix(source, iconURI); ok {
		var err error
		if raw, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(data), "")); err != nil {
			return "", fmt.Errorf("status icon: the data URI is not valid base64: %w", err)
		}
	} else if strings.HasPrefix(source, "data:") {
		return "", errors.New("status icon: a data URI must begin with " + iconURI)
	} else {
		name += " " + source
		info, err := os.Stat(source)
		if err != nil {
			return "", fmt.Errorf("status icon: %w", err)
		}
		if !info.Mode().IsRegular() || info.Size() > 1<<20 {
			return "", fmt.Errorf("%s: not a file of at most 1 MiB", name)
		}
		if raw, err = os.ReadFile(source); err != nil {
			return "", fmt.Errorf("status icon: %w", err)
		}
	}
	// The size first, so that a picture that claims to be huge costs nothing.
	switch c, err := png.DecodeConfig(bytes.NewReader(raw)); {
	case err != nil:
		return "", fmt.Errorf("%s: not a PNG picture: %w", name, err)
	case c.Width != iconSide || c.Height != iconSide:
		return "", fmt.Errorf("%s: is %d by %d pixels, must be %d by %d", name, c.Width, c.Height, iconSide, iconSide)
	}
	if _, err := png.Decode(bytes.NewReader(raw)); err != nil {
		return "", fmt.Errorf("%s: damaged PNG picture: %w", name, err)
	}
	if len(raw) > maxIconKB<<10 {
		return "", fmt.Errorf("%s: has %d KiB, at most %d fit into a status: save it with fewer colours", name, len(raw)>>10, maxIconKB)
	}
	return iconURI + base64.StdEncoding.EncodeToString(raw), nil
}
