package hub

// Store keeps lasting state. Its methods must not block.
type Store interface {
	// Load returns the whole state, once, before the first turn.
	Load() Changes
	// Save takes what a turn has changed. It calls done once, from any goroutine: when that is stored, or will not be
	// for now. Until then nobody is told that their request in that turn is done.
	Save(c Changes, done func())
	// Watch has wake called, by any goroutine, when there is something to take.
	Watch(wake func())
	// Take returns what others have changed since the last call. The turn calls it as it calls Save, so whatever it
	// takes is older than what it saves afterwards.
	Take() Changes
}

// begin takes in the stored state, before the first turn.
func (h *Hub) begin() {
	if h.Store == nil {
		return
	}
	if err := h.apply(h.Store.Load()); err != nil {
		h.Log.Error("some of the stored state cannot be used, and stays stored", "error", err)
	}
	h.Store.Watch(func() {
		h.news.Store(true)
		h.Wake()
	})
}

// takeNews takes in what others have stored.
func (h *Hub) takeNews() {
	if !h.news.Swap(false) {
		return
	}
	if err := h.apply(h.Store.Take()); err != nil {
		h.Log.Error("some of the state that others have stored cannot be used", "error", err)
	}
}

// changes returns the changes of this turn.
func (h *Hub) changes() (c Changes) {
	c.Groups, c.GroupsGone = h.groups.Changes()
	c.Mutes, c.MutesGone = h.mutes.Changes()
	c.Domains, c.DomainsGone = h.standing.Domains.Changes()
	c.Listens, c.ListensGone = h.standing.Listens.Changes()
	c.Edges, c.EdgesGone = h.standing.Edges.Changes()
	return c
}

// replies are the answers of a turn to requests of clients.
type replies struct {
	answers []answer
	stored  bool // the turn's changes
}

// settle ends a turn: its changes go to the store, and those who asked are told when they are there.
func (h *Hub) settle(inbox []arrival) {
	for _, do := range h.late {
		do()
	}
	clear(h.late)
	h.late = h.late[:0]
	h.count()
	h.nameGroups()
	finish(inbox, true)
	c, r := h.changes(), &replies{answers: h.answers}
	h.answers = nil
	done := func() {
		finish(inbox, false)
		h.holding.Lock()
		defer h.holding.Unlock()
		r.stored = true
		for len(h.held) > 0 && h.held[0].stored { // in the order in which the clients asked
			for _, a := range h.held[0].answers {
				a.to.client.Answer(a.result)
			}
			h.held = h.held[1:]
		}
	}
	if len(r.answers) > 0 {
		h.holding.Lock()
		h.held = append(h.held, r)
		h.holding.Unlock()
	}
	if h.Store == nil || c.empty() {
		done()
	} else {
		h.Store.Save(c, done)
	}
}

// finish tells those who wait for a turn that it is done: those whose orders only read, or the others.
func finish(inbox []arrival, reads bool) {
	for _, a := range inbox {
		if a.done != nil && a.reads == reads {
			close(a.done)
		}
	}
}

// Counts counts what there is at this moment.
type Counts struct {
	Groups  int
	Members int // of all groups
	Mutes   int // in force, that of everybody included
}

// Counts returns the counts of the last turn. Any goroutine may call it.
func (h *Hub) Counts() Counts {
	if c := h.counts.Load(); c != nil {
		return *c
	}
	return Counts{}
}

func (h *Hub) count() {
	now := Counts{Mutes: h.mutes.Len()}
	now.Groups, now.Members = h.groups.Count()
	if was := h.counts.Load(); was == nil || *was != now {
		h.counts.Store(&now)
	}
}
