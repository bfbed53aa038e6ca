package voice

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/speaker"
	"github.com/earshot-mc/earshot/voice/store"
)

// storePatience bounds the wait for a store that does not answer. The change is in force by then.
const storePatience = 5 * time.Second

// State is the [Store] of a gateway in buckets of NATS JetStream. Make one with [OpenState]; to close it, close the
// store it was opened on, after the gateway.
type State struct {
	log     *slog.Logger
	mutes   *kept[mute.Record]
	groups  *kept[group.Record]
	domains *kept[relation.Domain]
	listens *kept[relation.Listen]
	edges   *kept[relation.Edge]

	speakers *kept[speaker.Record]
	names    *kept[PlayerName]
}

// OpenState reads the stored state. Records that cannot be read are set aside and logged. ctx bounds the reading.
func OpenState(ctx context.Context, on *store.Store, log *slog.Logger) (*State, error) {
	s := &State{log: log}
	o := opening{ctx: ctx, on: on}
	s.mutes = keep(&o, store.Mutes, func(r mute.Record) string { return r.Player.String() }, (*mute.Record).Check)
	s.groups = keep(&o, store.Groups, func(r group.Record) string { return r.ID.String() }, (*group.Record).Check)
	s.domains = keep(&o, store.Domains, relation.Domain.Key, (*relation.Domain).Check)
	s.listens = keep(&o, store.Listens, relation.Listen.Key, (*relation.Listen).Check)
	s.edges = keep(&o, store.Edges, relation.Edge.Key, (*relation.Edge).Check)
	s.speakers = keep(&o, store.Speakers, speaker.Record.Key, (*speaker.Record).Check)
	s.names = keep(&o, store.Names, func(n PlayerName) string { return n.Player.String() }, (*PlayerName).Check)
	return s, o.err
}

// kept is a bucket of records that know their own keys.
type kept[T any] struct {
	*store.Bucket[T]
	key func(T) string
}

// opening opens several buckets, until the first that fails.
type opening struct {
	ctx context.Context
	on  *store.Store
	err error
}

func keep[T any](o *opening, name string, key func(T) string, check func(*T) error) *kept[T] {
	if o.err != nil {
		return nil
	}
	k := &kept[T]{key: key}
	k.Bucket, o.err = store.OpenBucket(o.ctx, o.on, store.Spec[T]{Name: name, Version: 1, Check: func(at string, r *T) error {
		if own := key(*r); own != at {
			return fmt.Errorf("it is the record of %q and stands at %q", own, at)
		}
		return check(r)
	}})
	return k
}

// Load implements [Store].
func (s *State) Load() Changes {
	return Changes{Mutes: s.mutes.all(), Groups: s.groups.all(), Domains: s.domains.all(), Listens: s.listens.all(), Edges: s.edges.all()}
}

func (k *kept[T]) all() (list []T) {
	for _, r := range k.Bucket.Load() {
		list = append(list, r)
	}
	return list
}

// Watch implements [Store].
func (s *State) Watch(wake func()) {
	s.mutes.Watch(wake)
	s.groups.Watch(wake)
	s.domains.Watch(wake)
	s.listens.Watch(wake)
	s.edges.Watch(wake)
}

// Take implements [Store].
func (s *State) Take() (c Changes) {
	var mutes, groups []string
	c.Mutes, mutes = s.mutes.take()
	c.Groups, groups = s.groups.take()
	c.MutesGone, c.GroupsGone = ids(mutes), ids(groups)
	c.Domains, c.DomainsGone = s.domains.take()
	c.Listens, c.ListensGone = s.listens.take()
	c.Edges, c.EdgesGone = s.edges.take()
	return c
}

func (k *kept[T]) take() (put []T, gone []string) {
	for _, c := range k.Bucket.Take() {
		if c.Gone {
			gone = append(gone, c.Key)
		} else {
			put = append(put, c.Value)
		}
	}
	return put, gone
}

// Save implements [Store].
func (s *State) Save(c Changes, done func()) {
	w := s.saving(done)
	s.mutes.save(w, c.Mutes, texts(c.MutesGone))
	s.groups.save(w, c.Groups, texts(c.GroupsGone))
	s.domains.save(w, c.Domains, c.DomainsGone)
	s.listens.save(w, c.Listens, c.ListensGone)
	s.edges.save(w, c.Edges, c.EdgesGone)
	w.stored(nil)
}

func (k *kept[T]) save(w *saving, put []T, gone []string) {
	for _, r := range put {
		w.left.Add(1)
		if err := k.Set(k.key(r), r, w.stored); err != nil {
			w.stored(err)
		}
	}
	for _, key := range gone {
		w.left.Add(1)
		if err := k.Unset(key, w.stored); err != nil {
			w.stored(err)
		}
	}
}

// Speakers returns the store of the administrators' speakers.
func (s *State) Speakers() SpeakerStore { return keptSpeakers{s} }

type keptSpeakers struct{ *State }

func (s keptSpeakers) Load() []speaker.Record {
	all := s.speakers.all()
	slices.SortFunc(all, func(a, b speaker.Record) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func (s keptSpeakers) Watch(wake func()) { s.speakers.Watch(wake) }

func (s keptSpeakers) Take() (put []speaker.Record, gone []uuid.UUID) {
	put, keys := s.speakers.take()
	return put, ids(keys)
}

func (s keptSpeakers) Save(put []speaker.Record, gone []uuid.UUID, done func()) {
	w := s.saving(done)
	s.speakers.save(w, put, texts(gone))
	w.stored(nil)
}

// saving begins to save something. Each save is added; stored is called once more at the end.
func (s *State) saving(done func()) *saving {
	w := &saving{log: s.log, done: sync.OnceFunc(done)}
	time.AfterFunc(storePatience, w.done)
	w.left.Add(1)
	return w
}

// saving waits for several saves.
type saving struct {
	log  *slog.Logger
	left atomic.Int32
	done func()
}

// stored notes that one of them is done, or why it is not.
func (w *saving) stored(err error) {
	if err != nil {
		w.log.Error("in force, but not stored", "error", err)
	}
	if w.left.Add(-1) == 0 {
		w.done()
	}
}

func texts(ids []uuid.UUID) (all []string) {
	for _, id := range ids {
		all = append(all, id.String())
	}
	return all
}

func ids(texts []string) (all []uuid.UUID) {
	for _, text := range texts {
		if id, err := uuid.Parse(text); err == nil { // every record that could be read parses
			all = append(all, id)
		}
	}
	return all
}
