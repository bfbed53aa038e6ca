package session

import (
	"slices"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// maxPacks bounds the resource packs of a client that are remembered; far more than any server sends.
const maxPacks = 64

// pack is a resource pack that the client was told to load.
type pack struct {
	packet.ResourcePack
	from    *link // the backend that asked for it
	ours    bool  // and has its answer already: this proxy sent it again, to a client that had forgotten it
	orphan  bool  // the backend that asked for it is gone
	removed bool  // and so is the pack, before it was answered
	step    packStep
	body    []byte // the whole packet, in 1.20.2
}

// packStep says how far the client is with a pack.
type packStep uint8

const (
	packAsked packStep = iota
	packAccepted
	packLoaded
)

// packs are the client's resource packs, in the order in which they were sent. Clients before 1.20.3 have one at a
// time, and their answers do not name it.
type packs struct {
	list []pack
	last *pack // a 1.20.2 client's pack before the configuration that made it forget
}

// push remembers a pack that the client is being told to load.
func (k *packs) push(p pack) {
	if p.ID != uuid.Nil {
		// The client forgets the one of the same id, and will not answer for it any more.
		k.list = slices.DeleteFunc(k.list, func(q pack) bool { return q.ID == p.ID })
	}
	if len(k.list) >= maxPacks {
		k.list = slices.Delete(k.list, 0, 1)
	}
	k.list = append(k.list, p)
}

// loaded finds a pack that the client has already, by its content.
func (k *packs) loaded(p packet.ResourcePack) *pack {
	for i := range k.list {
		if q := &k.list[i]; q.step == packLoaded && !q.removed && len(p.Hash) == 40 && q.ID == p.ID && q.Hash == p.Hash {
			return q
		}
	}
	return nil
}

// about finds the pack of an answer: one without a final answer; -1: none.
func (k *packs) about(protocol int32, a packet.PackAnswer) int {
	find := func(ok func(*pack) bool) int {
		for i := range k.list {
			if p := &k.list[i]; p.step != packLoaded && ok(p) {
				return i
			}
		}
		return -1
	}
	if proto.Has(protocol, proto.PackIDs) {
		return find(func(p *pack) bool { return p.ID == a.ID })
	}
	if proto.Has(protocol, proto.PackHash) {
		if i := find(func(p *pack) bool { return p.Hash == a.Hash && !p.orphan }); i >= 0 {
			return i
		}
		return find(func(p *pack) bool { return p.Hash == a.Hash })
	}
	// Nothing but the order tells packs apart. The question whether to load a pack goes unanswered when the client
	// changes worlds while it is on the screen; a pack whose download has begun gets its second answer wherever the
	// player is.
	second := a.Status == packet.PackLoaded || a.Status == packFailed
	for _, ok := range []func(*pack) bool{
		func(p *pack) bool { return second && p.step == packAccepted },
		func(p *pack) bool { return p.step == packAsked && !p.orphan },
		func(p *pack) bool { return !second && p.step == packAsked },
		func(p *pack) bool { return !second },
	} {
		if i := find(ok); i >= 0 {
			return i
		}
	}
	return -1
}

// packFailed is a failed download, in the versions with only four answers.
const packFailed packet.PackStatus = 2

// answer notes the client's answer about pack i.
func (k *packs) answer(protocol int32, i int, status packet.PackStatus) {
	p := &k.list[i]
	switch status {
	case packet.PackAccepted, packet.PackDownloaded:
		p.step = packAccepted
	case packet.PackLoaded:
		p.step = packLoaded
		if p.removed {
			k.list = slices.Delete(k.list, i, i+1)
		} else if !proto.Has(protocol, proto.PackIDs) { // in the place of any other
			me := *p
			k.list = slices.DeleteFunc(k.list, func(q pack) bool { return q.step == packLoaded })
			k.list = append([]pack{me}, k.list...)
		}
	default:
		k.list = slices.Delete(k.list, i, i+1)
	}
}

// remove forgets a pack, or all; the client may still answer those it has not.
func (k *packs) remove(id uuid.UUID, all bool) {
	for i := range k.list {
		if p := &k.list[i]; all || p.ID == id {
			p.removed = true
		}
	}
	k.list = slices.DeleteFunc(k.list, func(p pack) bool { return p.removed && p.step == packLoaded })
}

// orphan notes that a backend is gone. Later answers about its packs are for nobody.
func (k *packs) orphan(l *link) {
	for i := range k.list {
		if p := &k.list[i]; p.from == l {
			p.from, p.orphan = nil, true
		}
	}
	if k.last != nil && k.last.from == l {
		k.last.from, k.last.orphan = nil, true
	}
}

// packPushed handles a backend that wants the client to load a pack. If the client has loaded it, packPushed answers
// for it, since loading it once more would stop the game for seconds.
func (s *Session) packPushed(l *link, e *relay.Event) relay.Verdict {
	r, err := packet.ParseResourcePack(s.client.protocol, e.Body)
	if err != nil {
		s.undecoded(e.Packet)
		return relay.Forward
	}
	s.screen.packs.last = nil
	if have := s.screen.packs.loaded(r); have != nil && l.out == l.pump.State() {
		have.from, have.orphan, have.ours = l, false, false
		a := packet.PackAnswer{ID: r.ID, Hash: r.Hash}
		for _, a.Status = range []packet.PackStatus{packet.PackAccepted, packet.PackDownloaded, packet.PackLoaded} {
			if a.Status != packet.PackDownloaded || proto.Has(s.client.protocol, proto.PackIDs) {
				s.toBackend(l, proto.ResourcePackReceive, packet.AppendPackAnswer(nil, s.client.protocol, a))
			}
		}
		return relay.Handled
	}
	p := pack{ResourcePack: r, from: l}
	if s.client.version.Has(proto.PacksLostInConfiguration) && len(e.Body) <= maxPackBody {
		p.body = slices.Clone(e.Body)
	}
	s.screen.packs.push(p)
	return relay.Forward
}

// maxPackBody bounds the bytes of a pack's packet that are kept: address, hash and a prompt of reasonable length.
const maxPackBody = 8 << 10

// packRemoved handles a backend that wants the client to unload a pack, or all of them.
func (s *Session) packRemoved(e *relay.Event) relay.Verdict {
	id, all, err := packet.ParsePackRemoval(e.Body)
	if err != nil {
		s.undecoded(e.Packet)
		return relay.Forward
	}
	s.screen.packs.remove(id, all)
	return relay.Forward
}

// packAnswered handles the client's answer about a pack. It is for the backend that asked, in whatever state that is,
// and for nobody else: a server throws out a client that answers without being asked.
func (s *Session) packAnswered(e *relay.Event) relay.Verdict {
	a, err := packet.ParsePackAnswer(s.client.protocol, e.Body)
	if err != nil {
		return s.violation("resource pack answer: %v", err)
	}
	i := s.screen.packs.about(s.client.protocol, a)
	if i < 0 {
		s.core.Counters.Dropped[proto.Serverbound].Add(1)
		return relay.Handled
	}
	to := s.screen.packs.list[i].from
	if s.screen.packs.list[i].ours {
		to = nil
	}
	s.screen.packs.answer(s.client.protocol, i, a.Status)
	return s.give(to, e)
}

// unloadPacks takes away the packs of backends that are gone, but not the packs that the next backend, about to end the
// client's configuration, has asked for as well. Older clients keep the last pack until they get another.
func (s *Session) unloadPacks() {
	if !proto.Has(s.client.protocol, proto.PackIDs) || s.set().KeepPacks {
		return
	}
	id, ok := s.client.version.ID(s.client.out, proto.Clientbound, proto.RemoveResourcePack)
	for _, p := range slices.Clone(s.screen.packs.list) {
		if ok && p.orphan && !p.removed && s.ending == endNone {
			s.screen.packs.remove(p.ID, false)
			s.toClient(id, packet.AppendPackRemoval(nil, p.ID))
		}
	}
}

// forgetPacks notes that a 1.20.2 client unloads its pack at the start of a configuration.
func (s *Session) forgetPacks() {
	if !s.client.version.Has(proto.PacksLostInConfiguration) {
		return
	}
	for _, p := range s.screen.packs.list {
		if p.step == packLoaded && p.body != nil {
			s.screen.packs.last = &p
		}
	}
	s.screen.packs.list = slices.DeleteFunc(s.screen.packs.list, func(p pack) bool { return p.step == packLoaded })
}

// restorePack sends a 1.20.2 client the pack it has forgotten, when it is back with the server that sent it, or when
// packs are to be kept.
func (s *Session) restorePack() {
	p := s.screen.packs.last
	s.screen.packs.last = nil
	id, ok := s.client.version.ID(proto.Play, proto.Clientbound, proto.ResourcePackSend)
	if p == nil || !ok || p.orphan && !s.set().KeepPacks {
		return
	}
	again := *p
	again.ours, again.step = true, packAsked
	s.screen.packs.push(again)
	s.toClient(id, p.body)
}
