package world

import "github.com/earshot-mc/earshot/bridge/sight"

// Shown tells whether the player is shown the other, and if so whether they are apart although their worlds have one
// name.
func (p *Player) Shown(other *Player) (shown, apart bool) { return p.Sight.ShownApart(other.Sight) }

// EachShown calls visit for everybody the player is shown. visit must not ask for anybody's sight.
func (p *Player) EachShown(visit func(other *Player, apart bool)) {
	p.Sight.EachShown(func(o *sight.Session, apart bool) { visit(o.Self.(*Player), apart) })
}

// EachShownTo calls visit for everybody who is shown the player. visit must not ask for anybody's sight.
func (p *Player) EachShownTo(visit func(other *Player, apart bool)) {
	p.Sight.EachShownTo(func(o *sight.Session, apart bool) { visit(o.Self.(*Player), apart) })
}

// EachHidden calls visit for everybody whom the player must not know about although everybody else may. visit must not
// ask for anybody's sight.
func (p *Player) EachHidden(visit func(other *Player)) {
	p.Sight.EachHidden(func(o *sight.Session) { visit(o.Self.(*Player)) })
}

// EachHiddenFrom calls visit for everybody who must not know about the player although everybody else may. visit must
// not ask for anybody's sight.
func (p *Player) EachHiddenFrom(visit func(other *Player)) {
	p.Sight.EachHiddenFrom(func(o *sight.Session) { visit(o.Self.(*Player)) })
}

// EachNews calls visit for everybody whose state for the player may have changed since the last call: shown or not,
// apart or not. With whole that is too much to say: [Player.EachShown] has everybody. visit must not ask for anybody's
// sight.
func (p *Player) EachNews(visit func(other *Player, shown, apart bool)) (whole bool) {
	return p.Sight.News(func(o *sight.Session, shown, apart bool) { visit(o.Self.(*Player), shown, apart) })
}

// LookAgain makes the player returned by [Registry.NextSight], and everything about them, news.
func (p *Player) LookAgain() { p.Sight.Again() }

// Why is the evidence about one player for another.
type Why = sight.Why

// Causes of a [Why]; see bridge/sight.
const (
	Plain    = sight.Plain
	Nowhere  = sight.Nowhere
	Servers  = sight.Servers
	Unlisted = sight.Unlisted
	Removed  = sight.Removed
	Ages     = sight.Ages
	Seeds    = sight.Seeds
	Bodiless = sight.Bodiless
)

// Why explains what the player is shown of a talker.
func (p *Player) Why(talker *Player) Why { return p.Sight.Explain(talker.Sight) }
