package session

import (
	"crypto/sha256"
	"errors"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// Forge of 1.13 to 1.20.1 compares mods and registries while the client logs in, by login plugin requests. The first
// backend asks the client, which gets its login success only then. On the way to another backend it is in play and
// cannot be asked again: its first answers are repeated, as far as the other backend asks the same.

// Bounds of these answers.
const (
	maxQuestions   = 4096
	maxAnswerBytes = 2 << 20
)

// forgeQuestions is the channel of Forge's own requests. Their data names another channel, forgeHandshake for the
// loader's, and has the message behind its length. Discriminators: 1 the server's mods, 3 a registry, 4 a config file.
const (
	forgeQuestions = "fml:loginwrapper"
	forgeHandshake = "fml:handshake"
	forgeMods      = 1
	forgeConfig    = 4
)

// errOtherMods is the fault of a backend that asks a new question when the client can be asked no more.
var errOtherMods = errors.New("it asks the player's mod loader something that was not asked at login; give it the same mods and registries as the servers in try, or let players join it first")

// query is a question to the client from a backend that is being dialled.
type query struct {
	packet.LoginPluginRequest
	answer  func(packet.LoginPluginResponse)
	verdict chan error // one slot
}

// queryKey tells queries apart that may have different answers.
type queryKey [sha256.Size]byte

// key returns the query's key. The client's list of mods is the same for every server, and a config file is only
// acknowledged. Any other question is the same only when it is the same to the last byte: a client must not go on with
// the registries of another server.
func (q *query) key() queryKey {
	what := q.Data
	if r := field.NewReader(q.Data); q.Channel == forgeQuestions && string(r.StringBytes(field.MaxString)) == forgeHandshake {
		r.VarInt() // length
		switch r.VarInt() {
		case forgeMods:
			what = []byte{forgeMods}
		case forgeConfig:
			what = append([]byte{forgeConfig}, r.StringBytes(field.MaxString)...)
		}
		if r.Err() != nil {
			what = q.Data
		}
	}
	return sha256.Sum256(append(append([]byte(q.Channel), 0), what...))
}

// mods holds the questions to the client and their answers.
type mods struct {
	asked   int32               // ids used
	open    map[int32]openQuery // by our id; some stay without an answer
	answers map[queryKey]*packet.LoginPluginResponse
	bytes   int // in answers
}

// openQuery is one that the client has not answered yet.
type openQuery struct {
	key    queryKey
	answer func(packet.LoginPluginResponse)
}

// begin forgets the answers to a backend that has not taken the player. Its open questions stay: answers to these still
// come.
func (m *mods) begin() {
	m.answers, m.bytes = map[queryKey]*packet.LoginPluginResponse{}, 0
	if m.open == nil {
		m.open = map[int32]openQuery{}
	}
}

// asksFirst reports whether backends have questions to the client before its login success. For an unknown version they
// may have some, and nothing can be said to such a client later.
func (s *Session) asksFirst() bool {
	return s.relayed() || s.client.marker != "" && s.client.version.Has(proto.NamespacedChannels) && !s.client.version.HasConfiguration()
}

// ask hands a backend's question to the owner. It is called by the goroutine that dials.
func (s *Session) ask(q packet.LoginPluginRequest, answer func(packet.LoginPluginResponse)) error {
	asked := &query{q, answer, make(chan error, 1)}
	select {
	case s.queries <- asked:
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
	select {
	case err := <-asked.verdict:
		return err
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// asks decides about a backend's question.
func (s *Session) asks(q *query) error {
	m, key := &s.client.mods, q.key()
	if s.client.out == proto.Login {
		if len(m.open) >= maxQuestions || len(m.answers) >= maxQuestions {
			return backend.ErrNotUnderstood
		}
		id := m.asked
		m.asked++
		m.open[id] = openQuery{key, q.answer}
		m.answers[key] = nil
		s.timers.within(s.set().Timeouts.Login, s.slowLogin)
		r := q.LoginPluginRequest
		r.ID = id
		if id, ok := s.client.version.ID(proto.Login, proto.Clientbound, proto.LoginPluginRequest); ok {
			s.toClient(id, packet.AppendLoginPluginRequest(nil, r))
		}
		return nil
	}
	a, ok := m.answers[key]
	switch {
	case ok:
		if a != nil { // otherwise the client did not answer either
			q.answer(*a)
		}
		return nil
	case q.Channel == forgeQuestions:
		return errOtherMods
	}
	return backend.ErrNotUnderstood
}

// modsAnswer handles the client's packets while it waits for its login success.
func (s *Session) modsAnswer(e *relay.Event) relay.Verdict {
	if e.Packet != proto.LoginPluginResponse {
		return s.violation("packet %d before the login is over", e.ID)
	}
	a, err := packet.ParseLoginPluginResponse(e.Body)
	if err != nil {
		return s.violation("%s", err)
	}
	m := &s.client.mods
	q, ok := m.open[a.ID]
	if !ok {
		return s.violation("answer to a login plugin request that nobody made")
	}
	delete(m.open, a.ID)
	s.timers.within(s.set().Timeouts.Login, s.slowLogin)
	if _, current := m.answers[q.key]; current {
		if m.bytes += len(a.Data); m.bytes <= maxAnswerBytes {
			m.answers[q.key] = &a
		} else {
			delete(m.answers, q.key)
		}
	}
	q.answer(a)
	return relay.Handled
}

// welcome gives a client its login success: a backend has taken it. It reports whether the session goes on.
func (s *Session) welcome() bool {
	s.timers.settled()
	s.success()
	if err := s.client.w.Flush(); err != nil {
		s.unwritable(s.client.to, err)
		return false
	}
	s.admitted()
	return true
}

// straggler drops an answer to a backend that was given up.
func (s *Session) straggler(e *relay.Event) bool {
	if e.Packet != proto.LoginPluginResponse {
		return false
	}
	a, err := packet.ParseLoginPluginResponse(e.Body)
	_, open := s.client.mods.open[a.ID]
	if err != nil || !open {
		return false
	}
	delete(s.client.mods.open, a.ID)
	s.core.Counters.Dropped[proto.Serverbound].Add(1)
	return true
}

// catchUp handles the first frame of a client after welcome. The client's reader, which waited for bytes, learns only
// now that the login is over. Answers to a backend that was given up may still come before that.
func (s *Session) catchUp(e *relay.Event) relay.Verdict {
	if s.straggler(e) {
		return relay.Handled
	}
	s.client.mods.open = nil
	e.Pump.Enter(s.client.in)
	s.direct()
	return relay.Again
}
