package session

import (
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// client is the player's side: the connection, who is at its other end, what they said that outlives a backend, and what
// others have to say to them. The owner's, except for what says so.
type client struct {
	identity

	conn    net.Conn
	r       *frame.Reader
	w       *frame.Writer
	version *proto.Version
	pump    *relay.Pump   // reads it
	to      *relay.Outlet // it as a place to write to
	in, out proto.State   // how packets from and to it are decoded and encoded

	facts facts // what it said once and every backend must hear
	said  said  // how much more it may say of plugin channels
	fml   fmlStage
	mods  mods // what its mod loader answered to the backend it logged in with

	// For other goroutines.
	mail      *mailbox
	unlisted  atomic.Bool  // it does not want to be shown in the server list
	ping      atomic.Int64 // ns between a backend's keep-alive and its answer
	locale    atomic.Pointer[string]
	forgeMods atomic.Pointer[[]packet.ForgeMod]
}

// identity is who a client is and how it came here. It is fixed once the login has succeeded.
type identity struct {
	address  netip.AddrPort
	protocol int32
	host     string // cleaned
	rawHost  string // as sent
	marker   string // of a mod loader
	port     uint16
	transfer bool   // another server sent the player here
	bedrock  bool   // Geyser translates for the player
	geyser   string // what it sent of the player, for backends with Floodgate

	id         uuid.UUID
	name       string
	online     bool
	properties []packet.Property
	key        *packet.ProfileKey // 1.19 to 1.19.2
}
