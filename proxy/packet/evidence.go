package packet

import "github.com/earshot-mc/earshot/proxy/field"

// ParseWorldAge reads the beginning of an update_time: the age, in ticks of 1/20 s, of the client's world. The rest
// differs between versions and tells nothing about worlds: a time of day may be one player's own.
//
// Layout: play/toClient/update_time.
func ParseWorldAge(body []byte) (ticks int64, err error) {
	r := field.NewReader(body)
	ticks = r.I64()
	return ticks, r.Err()
}

// ParseHealth reads the beginning of an update_health: the player's hearts, doubled. A player with 0 or less is dead.
//
// Layout: play/toClient/update_health.
func ParseHealth(body []byte) (health float32, err error) {
	r := field.NewReader(body)
	health = r.F32()
	return health, r.Err()
}
