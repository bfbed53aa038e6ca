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
	c := map[string]any{"text": "", "extra": []json.RawMessage{t.JSON(protocol)}}
	on, do := "hoverEvent", "clickEvent"
	shown, run := "contents", "value"
	switch {
	case proto.Has(protocol, proto.ComponentSnakeCase):
		on, do, shown, run = "hover_event", "click_event", "value", "command"
	case !proto.Has(protocol, proto.HexColors):
		shown = "value"
	}
	c[on] = map[string]any{"action": "show_text", shown: json.RawMessage(hover.JSON(protocol))}
	if command != "" {
		c[do] = map[string]any{"action": "run_command", run: command}
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
