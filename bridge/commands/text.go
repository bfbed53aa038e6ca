package commands

import (
	"encoding/json"

	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// join puts texts behind each other, for a client of protocol.
func join(protocol int32, parts ...packet.Text) packet.Text {
	extra := make([]json.RawMessage, len(parts))
	for i, p := range parts {
		extra[i] = p.JSON(protocol)
	}
	return component(map[string]any{"text": "", "extra": extra})
}

// clickable returns t with a text that shows when the pointer rests on it, and a command that a click runs; none if
// empty.
func clickable(protocol int32, t, hover packet.Text, command string) packet.Text {
	if command == "" {
		return clicked(protocol, t, hover, "", "", "")
	}
	return clicked(protocol, t, hover, "run_command", "command", command)
}

// link returns t as a link to url.
func link(protocol int32, t, hover packet.Text, url string) packet.Text {
	return clicked(protocol, t, hover, "open_url", "url", url)
}

// clicked returns t with what a click does, and what it does it with, which has a name of its own since 1.21.5. Without
// an action a click does nothing.
func clicked(protocol int32, t, hover packet.Text, action, named, with string) packet.Text {
	c := map[string]any{"text": "", "extra": []json.RawMessage{t.JSON(protocol)}}
	on, do := "hoverEvent", "clickEvent"
	shown, value := "contents", "value"
	switch {
	case proto.Has(protocol, proto.ComponentSnakeCase):
		on, do, shown, value = "hover_event", "click_event", "value", named
	case !proto.Has(protocol, proto.HexColors):
		shown = "value"
	}
	c[on] = map[string]any{"action": "show_text", shown: json.RawMessage(hover.JSON(protocol))}
	if action != "" {
		c[do] = map[string]any{"action": action, value: with}
	}
	return component(c)
}

// component cannot fail: the result of Text.JSON is JSON, unless the Text was made from bytes that are none, and none
// here was.
func component(c map[string]any) packet.Text {
	raw, err := json.Marshal(c)
	if err != nil {
		return packet.Text{}
	}
	return packet.JSONText(raw)
}
