package session

// Ending says why a connection ended. It is the one list: counters, logs and the text for the player all use it.
// Endings before [EndRefused] never reached a player; those up to [EndDuplicate] are refused logins.
type Ending uint8

// The endings.
const (
	endNone             Ending = iota
	EndStatus                  // a server list ping, answered
	EndClosed                  // the peer left before it had logged in
	EndGarbage                 // not the protocol: first packet, intent, frame or field
	EndCrowded                 // too many connections that are not players yet
	EndUnknownHost             // came by a host name that is refused
	EndForwarded               // passed on to a server as it was; over now
	EndStatusThrottled         // too many pings from this network
	EndHandshakeTimeout        // did not finish handshake, status exchange or login in time
	EndThrottled               // too many logins from this network
	EndOutdated                // a protocol we do not speak
	EndTransfer                // transfers are not accepted
	EndBadName                 // a name that the name rule refuses
	EndBadKey                  // 1.19-1.19.2 profile key missing, expired or not signed by Mojang
	EndEncryption              // the encryption response is wrong
	EndUnauthenticated         // the session server does not know the player
	EndAuthDown                // the session server does not answer
	EndBedrockSource           // Floodgate's data from an address where no Geyser is expected
	EndBedrockData             // Floodgate's data that the key does not open, or used before
	EndDuplicate               // the name or UUID is already playing and keeps its place
	EndReplaced                // the same account logged in again
	EndLeft                    // the player left
	EndProtocol                // the client broke the protocol after its login
	EndIdle                    // nothing from the client for the read timeout
	EndStalled                 // the client takes no data for the write timeout
	EndUnanswered              // the client did not acknowledge a change of state in time
	EndOverflow                // a bounded queue of this player is full
	EndFlood                   // the client sent too much of one kind
	EndNoServer                // no backend is configured, or none of the list took the player
	EndKicked                  // the backend disconnected the player
	EndBackendLost             // the backend closed the connection or broke the protocol
	EndBackendTimeout          // the backend fell silent or did not finish a stage in time
	EndDisconnected            // this proxy's own code disconnected the player
	EndShutdown                // the proxy is going down
	EndPanic                   // a bug of ours; the stack is in the log
	endings
)

var endingNames = [endings]string{
	"none", "status", "closed", "garbage", "crowded", "unknown_host", "forwarded", "status_throttled", "handshake_timeout",
	"throttled", "outdated", "transfer", "bad_name", "bad_key", "encryption", "unauthenticated", "auth_down", "bedrock_source",
	"bedrock_data", "duplicate", "replaced", "left",
	"protocol", "idle", "stalled", "unanswered", "overflow", "flood", "no_server", "kicked", "backend_lost", "backend_timeout",
	"disconnected", "shutdown", "panic",
}

// String returns the ending's name in metrics and logs.
func (e Ending) String() string {
	if e < endings {
		return endingNames[e]
	}
	return "unknown"
}

// Refused reports whether e is a login that was refused.
func (e Ending) Refused() bool { return e >= EndThrottled && e <= EndDuplicate }

// Endings lists all endings, so that each can be exported at zero from the start.
func Endings() []Ending {
	all := make([]Ending, 0, endings-1)
	for e := endNone + 1; e < endings; e++ {
		all = append(all, e)
	}
	return all
}
