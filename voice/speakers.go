package voice

import (
	"maps"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/speaker"
)

// SpeakerStore keeps the speakers of administrators. Its methods must not block. They work like the methods of [Store].
type SpeakerStore interface {
	Load() []speaker.Record
	Save(put []speaker.Record, gone []uuid.UUID, done func())
	Watch(wake func())
	Take() (put []speaker.Record, gone []uuid.UUID)
}

// keepSpeakers opens the book of speakers with the stored ones, and follows what others store.
func (g *Gateway) keepSpeakers(sounds string, convert speaker.Converter, kept SpeakerStore) {
	ended := func(name, file string, err error) {
		g.log.Warn("a speaker has ended its file", "speaker", name, "file", file, "error", err)
	}
	if kept == nil {
		g.book = speaker.NewBook(g.speakers, speaker.Sounds(sounds), nil)
		g.book.Ended, g.book.Convert = ended, convert
		return
	}
	g.book = speaker.NewBook(g.speakers, speaker.Sounds(sounds), func(put []speaker.Record, gone []uuid.UUID) {
		kept.Save(put, gone, g.unsaved.add())
	})
	g.book.Ended, g.book.Convert = ended, convert
	if err := g.book.Apply(kept.Load(), nil); err != nil {
		g.log.Error("some of the stored speakers cannot be set up, and stay stored", "error", err)
	}
	news := make(chan struct{}, 1)
	kept.Watch(func() {
		select {
		case news <- struct{}{}:
		default:
		}
	})
	g.following.Go(func() {
		for {
			select {
			case <-g.ctx.Done():
				return
			case <-news:
				if err := g.book.Take(kept.Take); err != nil {
					g.log.Error("some of the speakers that others have stored cannot be set up", "error", err)
				}
			}
		}
	})
}

// SpeakerBook returns the administrators' speakers, by name. After a change wait with [Gateway.SpeakersStored] before
// confirming it.
func (g *Gateway) SpeakerBook() *speaker.Book { return g.book }

// SpeakersStored returns when earlier changes of the book are stored, or cannot be for now.
func (g *Gateway) SpeakersStored() {
	g.unsaved.wait()
}

// unsaved is changes that are being stored. They end in any order: of one record the newest alone is stored, which may
// be after what came later.
type unsaved struct {
	mu  sync.Mutex
	all map[chan struct{}]struct{} // each closed when it is stored
}

// add counts a change, until done is called, once.
func (u *unsaved) add() (done func()) {
	stored := make(chan struct{})
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil {
		u.all = make(map[chan struct{}]struct{})
	}
	u.all[stored] = struct{}{}
	return func() {
		u.mu.Lock()
		delete(u.all, stored)
		u.mu.Unlock()
		close(stored)
	}
}

// wait returns when all that have been added by now are done.
func (u *unsaved) wait() {
	u.mu.Lock()
	all := slices.Collect(maps.Keys(u.all))
	u.mu.Unlock()
	for _, stored := range all {
		<-stored
	}
}
