package peer

// Version is a release for which there are a client and a server here.
type Version struct {
	Name     string // as the peers take it: other names would silently mean another version
	Protocol int32
}

// Versions are all of them, oldest first.
var Versions = []Version{
	{"1.8.8", 47}, {"1.9", 107}, {"1.9.2", 109}, {"1.9.4", 110}, {"1.10.2", 210}, {"1.11", 315}, {"1.11.2", 316},
	{"1.12", 335}, {"1.12.1", 338}, {"1.12.2", 340}, {"1.13", 393}, {"1.13.1", 401}, {"1.13.2", 404}, {"1.14", 477},
	{"1.14.1", 480}, {"1.14.3", 490}, {"1.14.4", 498}, {"1.15", 573}, {"1.15.1", 575}, {"1.15.2", 578}, {"1.16", 735},
	{"1.16.1", 736}, {"1.16.2", 751}, {"1.16.3", 753}, {"1.16.5", 754}, {"1.17", 755}, {"1.17.1", 756}, {"1.18", 757},
	{"1.18.2", 758}, {"1.19", 759}, {"1.19.2", 760}, {"1.19.3", 761}, {"1.19.4", 762}, {"1.20.1", 763}, {"1.20.2", 764},
	{"1.20.4", 765}, {"1.20.6", 766}, {"1.21.1", 767}, {"1.21.3", 768}, {"1.21.4", 769}, {"1.21.5", 770}, {"1.21.6", 771},
	{"1.21.8", 772}, {"1.21.9", 773}, {"1.21.11", 774}, {"26.1", 775}, {"26.2", 776}, {"26.3", 777},
}

// Newer is an invented release that has peers all the same: 26.3 with other ids in play.
var Newer = Version{"27.0", 900}

// Core are the versions every end-to-end test runs: each is the last of its kind for a proxy or a widespread one.
var Core = []Version{
	{"1.8.8", 47}, {"1.12.2", 340}, {"1.16.5", 754}, {"1.19.4", 762}, {"1.20.1", 763}, {"1.20.4", 765}, {"1.21.4", 769},
	{"1.21.11", 774}, {"26.1", 775}, {"26.2", 776}, {"26.3", 777},
}

// SquidNewest is the newest version of flying-squid.
const SquidNewest = "1.21.4"

// Protocol returns the number of a version in [Versions], 0 if it is not there.
func Protocol(name string) int32 {
	for _, v := range append(Versions[:len(Versions):len(Versions)], Newer) {
		if v.Name == name {
			return v.Protocol
		}
	}
	return 0
}
