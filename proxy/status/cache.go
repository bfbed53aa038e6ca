package status

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// Bounds of a [Cache].
const (
	maxKept   = 1024            // answers, those that never came included
	maxBytes  = 16 << 20        // they hold together
	maxAsking = 64              // servers asked at once
	tooOld    = 6               // ages after which an answer is shown no more; after one age it is asked for again
	retry     = 5 * time.Second // after a server did not answer, at the latest
)

// Key names a question to a server: the name of a host, and the protocol of the client.
type Key struct {
	Server   string // the same for servers that can only give the same answer
	Host     string
	Protocol int32
}

// Cache keeps the answers of servers, so that a crowd of pings is one to the server, and so that none waits long for a
// server that does not answer. It is safe for concurrent use.
type Cache struct {
	within time.Duration
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	asking sync.WaitGroup

	mu     sync.Mutex
	closed bool
	fresh  time.Duration
	kept   map[Key]*kept
	bytes  int // of the answers in kept
	now    int // servers being asked
}

// kept is what is known about one key.
type kept struct {
	answer *Answer       // nil: it did not answer, or has not yet
	at     time.Time     // when it did, or did not; zero: not yet
	asked  chan struct{} // closed when it has been asked; nil: it is not being asked
}

// NewCache returns a Cache that asks again for answers older than fresh. A server has no more time than within to
// answer. log may be nil. Close ends it.
func NewCache(fresh, within time.Duration, log *slog.Logger) *Cache {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Cache{within: within, log: log, fresh: fresh, kept: map[Key]*kept{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Fresh changes the age from which answers are asked for again.
func (c *Cache) Fresh(age time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh = age
}

// Get returns the answer to k, nil when there is none. ask gets it from the server, as JSON; it is called unless there
// is a fresh answer. Only where nothing recent is known does the caller wait for it, and no longer than ctx. Until then
// Get returns the last answer, or after a failure that there is none.
func (c *Cache) Get(ctx context.Context, k Key, ask func(context.Context) ([]byte, error)) *Answer {
	c.mu.Lock()
	e, now := c.kept[k], time.Now()
	if e == nil {
		if c.now >= maxAsking || c.closed || !c.room() {
			c.mu.Unlock()
			return nil
		}
		e = &kept{}
		c.kept[k] = e
	}
	age, fresh := now.Sub(e.at), c.fresh
	if e.answer == nil {
		fresh = min(fresh, retry)
	}
	if age >= fresh && e.asked == nil && c.now < maxAsking && !c.closed {
		e.asked = make(chan struct{})
		c.now++
		c.asking.Go(func() { c.ask(k, e, ask) })
	}
	known := !e.at.IsZero() && age < tooOld*max(c.fresh, c.within)
	answer, asked := e.answer, e.asked
	c.mu.Unlock()
	switch {
	case known:
		return answer
	case asked == nil: // too many are being asked
		return nil
	}
	select {
	case <-asked:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.asked == asked { // still
		return nil
	}
	return e.answer
}

// ask gets one answer.
func (c *Cache) ask(k Key, e *kept, ask func(context.Context) ([]byte, error)) {
	ctx, cancel := context.WithTimeout(c.ctx, c.within)
	defer cancel()
	a, err := try(ctx, ask)
	if err != nil {
		c.log.Debug("a server does not answer for the server list", "server", k.Server, "error", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes += a.bytes() - e.answer.bytes()
	e.answer, e.at = a, time.Now()
	close(e.asked)
	e.asked = nil
	c.now--
	c.room()
}

// try gets an answer, and turns whatever goes wrong into an error: nobody above would catch a panic.
func try(ctx context.Context, ask func(context.Context) ([]byte, error)) (a *Answer, err error) {
	defer func() {
		if v := recover(); v != nil {
			a, err = nil, fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	json, err := ask(ctx)
	if err != nil {
		return nil, err
	}
	return ParseAnswer(json)
}

// room makes room for one more, and reports whether there is any. Questions under way stay.
func (c *Cache) room() bool {
	for k, e := range c.kept { // in no order
		if len(c.kept) < maxKept && c.bytes <= maxBytes {
			return true
		}
		if e.asked == nil {
			c.bytes -= e.answer.bytes()
			delete(c.kept, k)
		}
	}
	return len(c.kept) < maxKept
}

func (a *Answer) bytes() int {
	if a == nil {
		return 0
	}
	return a.size
}

// Close gives up the questions under way and waits for their end. Nothing is asked any more.
func (c *Cache) Close() {
	c.cancel()
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.asking.Wait()
}
