package limbo

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/google/uuid"
)

// refusal ends a login; its text goes to the player.
type refusal struct{ text string }

func (r refusal) Error() string { return "refused: " + r.text }

// serve runs a connection from handshake to end. From login success on another goroutine writes, so that this one
// always reads: the other end need not be able to do both at a time.
func (w *World) serve(c net.Conn) error {
	c.SetDeadline(time.Now().Add(joinWithin))
	in := frame.NewReader(c, frame.Limits{})
	defer in.Release()
	p, data, err := w.login(c, in)
	if r := (refusal{}); errors.As(err, &r) {
		c.Write(appendLoginRefusal(nil, packet.Plain(r.text)))
	}
	if err != nil {
		return err
	}
	var writer sync.WaitGroup
	var writeErr error
	writer.Go(func() {
		defer c.Close()
		writeErr = p.write()
	})
	if err = p.configure(in, data); err == nil {
		c.SetReadDeadline(time.Time{})
		err = w.play(p, in, data)
	}
	p.out.end(nil)
	p.hurry(true)
	writer.Wait()
	if writeErr != nil {
		err = writeErr // the reader only saw the connection closed then
	}
	return fmt.Errorf("%s: %w", p.name, err)
}

// login handles everything up to login success, which then waits in the player's outbox.
func (w *World) login(c net.Conn, in *frame.Reader) (*player, *join, error) {
	body, err := expect(in, 0)
	if err != nil {
		return nil, nil, err
	}
	h, err := packet.ParseHandshake(body, packet.MaxForwardedHost)
	if err != nil {
		return nil, nil, err
	}
	if h.Intent == packet.IntentStatus {
		return nil, nil, errors.New("the built-in world has no status of its own")
	}
	if body, err = expect(in, 0); err != nil { // read even if refused: the other end may still be writing it
		return nil, nil, err
	}
	version := proto.Lookup(h.Protocol)
	if version == nil || worlds()[version.Like] == nil {
		return nil, nil, refusal{refuseVersion(h.Protocol)}
	}
	data, err := open(version)
	if err != nil {
		return nil, nil, errors.Join(err, refusal{"The built-in world is out of order for your version of the game."})
	}
	start, err := packet.ParseLoginStart(h.Protocol, body)
	if err != nil {
		return nil, nil, err
	}
	p := newPlayer(w, c, version, start.Name)
	if p.id, p.properties, err = forwarded(h.Host); err != nil {
		return nil, nil, errors.Join(err, refusal{"This world can only be entered through its proxy."})
	}
	success := packet.LoginSuccess{ID: p.id, Name: p.name, Properties: p.properties}
	p.out.send(appendFrame(nil, version, proto.Login, proto.LoginSuccess, packet.AppendLoginSuccess(nil, h.Protocol, success)))
	return p, data, nil
}

// expect reads the next packet, which must be the one with that id.
func expect(in *frame.Reader, id int32) ([]byte, error) {
	f, err := in.Next()
	if err != nil {
		return nil, err
	}
	if f.ID != id {
		return nil, fmt.Errorf("packet %#02x came instead of %#02x", f.ID, id)
	}
	return in.Body(f)
}

// forwarded takes the identity out of the host of a handshake: host, address, id and, as JSON, properties, with zero
// bytes between them.
func forwarded(host string) (id uuid.UUID, properties []packet.Property, err error) {
	parts := strings.Split(host, "\x00")
	if len(parts) < 3 {
		return id, nil, errors.New("the handshake has no forwarded identity: set forwarding to legacy")
	}
	if id, err = uuid.Parse(parts[2]); err != nil {
		return id, nil, fmt.Errorf("forwarded identity: %w", err)
	}
	if len(parts) > 3 && parts[3] != "" {
		if err := json.Unmarshal([]byte(parts[3]), &properties); err != nil {
			return id, nil, fmt.Errorf("forwarded properties: %w", err)
		}
	}
	return id, properties, nil
}

// appendLoginRefusal appends a refusal, which is the same packet in all versions.
func appendLoginRefusal(dst []byte, reason packet.Text) []byte {
	return appendDisconnect(dst, proto.Supported()[0], proto.Login, reason)
}

// refuseVersion says which versions work.
func refuseVersion(protocol int32) string {
	all := proto.Supported()
	first, last := all[0].Names, all[len(all)-1].Names
	text := fmt.Sprintf("The built-in world does not know your version of the game (protocol %d). It works with %s to %s", protocol, first[0], last[len(last)-1])
	have := Protocols()
	var missing []string
	for _, v := range all {
		if !slices.Contains(have, v.Protocol) {
			missing = append(missing, v.Names...)
		}
	}
	if len(missing) > 0 {
		text += ", but not " + strings.Join(missing, ", ")
	}
	return text + "."
}

// configure runs the configuration phase of the versions that have one.
func (p *player) configure(in *frame.Reader, data *join) error {
	if !p.version.HasConfiguration() {
		return nil
	}
	if err := p.await(in, proto.Login, proto.LoginAcknowledged); err != nil {
		return err
	}
	p.out.share(data.config)
	p.out.send(appendFrame(nil, p.version, proto.Config, proto.FinishConfiguration, nil))
	return p.await(in, proto.Config, proto.FinishConfiguration)
}

// await passes over packets until the named one: the client says other things in between, and none of them matters
// here.
func (p *player) await(in *frame.Reader, s proto.State, want proto.Packet) error {
	names := p.version.Table(s, proto.Serverbound)
	for {
		f, err := in.Next()
		if err != nil {
			return err
		}
		if f.ID >= 0 && int(f.ID) < len(names) && names[f.ID] == want {
			return nil
		}
	}
}

// appendLogin appends the play login with the player's entity id; data.loginRest follows it.
func appendLogin(dst []byte, data *join, entity int32) []byte {
	return field.AppendI32(append(dst, data.loginHead...), entity)
}
