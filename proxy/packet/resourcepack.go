package packet

import (
	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// ResourcePack names a pack that a server tells a client to load, as far as telling packs apart goes; force flag and
// prompt stand behind it. The packet is resource_pack_send, and add_resource_pack from 765 (1.20.3) on.
type ResourcePack struct {
	ID   uuid.UUID // 765 on: clients keep several
	URL  string
	Hash string // SHA-1 in 40 hex digits; may be empty
}

// ParseResourcePack reads the start of such a packet, and ignores the rest.
//
// Layout: play/toClient/resource_pack_send, from 765 on play/toClient/add_resource_pack.
func ParseResourcePack(protocol int32, body []byte) (p ResourcePack, err error) {
	r := field.NewReader(body)
	if proto.Has(protocol, proto.PackIDs) {
		p.ID = r.UUID()
	}
	p.URL, p.Hash = r.String(field.MaxString), r.String(40)
	return p, r.Err()
}

// PackStatus is a client's answer about a resource pack.
type PackStatus int32

// The statuses the proxy has to know. All but accepted and downloaded are final.
const (
	PackLoaded     PackStatus = 0
	PackAccepted   PackStatus = 3
	PackDownloaded PackStatus = 4 // 765 on
)

// PackAnswer is a client's resource_pack_receive.
type PackAnswer struct {
	ID     uuid.UUID // 765 on
	Hash   string    // before 210 (1.10): as the server gave it
	Status PackStatus
}

// ParsePackAnswer reads a client's answer.
//
// Layout: play/toServer/resource_pack_receive.
func ParsePackAnswer(protocol int32, body []byte) (a PackAnswer, err error) {
	r := field.NewReader(body)
	switch {
	case proto.Has(protocol, proto.PackIDs):
		a.ID = r.UUID()
	case proto.Has(protocol, proto.PackHash):
		a.Hash = r.String(field.MaxString)
	}
	a.Status = PackStatus(r.VarInt())
	return a, r.End()
}

// AppendPackAnswer writes a client's answer.
func AppendPackAnswer(dst []byte, protocol int32, a PackAnswer) []byte {
	switch {
	case proto.Has(protocol, proto.PackIDs):
		dst = field.AppendUUID(dst, a.ID)
	case proto.Has(protocol, proto.PackHash):
		dst = field.AppendString(dst, a.Hash)
	}
	return field.AppendVarInt(dst, int32(a.Status))
}

// ParsePackRemoval reads a remove_resource_pack (765 on): one pack, or all of them.
//
// Layout: play/toClient/remove_resource_pack.
func ParsePackRemoval(body []byte) (id uuid.UUID, all bool, err error) {
	r := field.NewReader(body)
	if all = !r.Bool(); !all {
		id = r.UUID()
	}
	return id, all, r.End()
}

// AppendPackRemoval writes a remove_resource_pack for one pack.
func AppendPackRemoval(dst []byte, id uuid.UUID) []byte {
	return field.AppendUUID(field.AppendBool(dst, true), id)
}
