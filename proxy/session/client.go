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

// client is the player's side: the connection, the player at its other end, their words that outlive a backend, and
// what others have to say to them. It is the owner's, except where it says otherwise.
type client struct {
	identity

	conn    net.Conn
	r       *frame.Reader
	w       *frame.Writer
	version *proto.Version
	pump    *relay.Pump   // reads it
	to      *relay.Outlet // it as a place to write to
	in, out proto.State   // how packets from and to it are decoded and encoded

	facts facts // words that every backend must hear
	said  said  // how much more it may say of plugin channels
	fml   fmlStage
	mods  mods // its mod loader's answers to the first backend

	// For other goroutines.
	mail      *mailbox
	unlisted  atomic.Bool  // it does not want to be shown in the server list
	ping      atomic.Int64 // ns between a backend's keep-alive and its answer
	locale    atomic.Pointer[string]
	forgeMods atomic.Pointer[[]packet.ForgeMod]
}

// identity says who a client is and how it came here. It is fixed once the login has succeeded.
type identity struct {
	address  netip.AddrPort
	protocol int32
	host     string // cleaned
	rawHost  string // as sent
	marker   string // of a mod loader
	port     uint16
	transfer bool   // another server sent the player here
	bedrock  bool   // Geyser translates for the player
	geyser   string // Geyser's data about the player, for backends with Floodgate

	id         uuid.UUID
	name       string
	online     bool
	properties []packet.Property
	key        *packet.ProfileKey // 1.19 to 1.19.2
}
