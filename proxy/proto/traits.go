package proto

import "strings"

// Trait names one way in which a version's packets differ from those of others. Code that reads or writes a packet asks
// for the trait and never for a number. So a version is its ids and its traits, and a file can add one.
type Trait uint8

// The traits, in the order in which the game got them. The table below says what each means.
const (
	AttachRides Trait = iota
	PackHash
	OffHand
	EntityPlaceF64
	SpawnUUID
	TeleportID
	SuggestionsInBlock
	DimensionI32
	TitleWithActionBar
	LivingTypeVarInt
	TranslatedReasons
	KeepAliveI64
	NamespacedChannels
	CommandTree
	RespawnDifficulty
	SpawnTypeVarInt
	SpawnMetadata
	HashedSeed
	NamedWorlds
	HexColors
	BinaryUUID
	ChatSender
	HardcoreFlag
	DimensionInline
	TitlePackets
	ClientFiltering
	TeleportDismount
	ClientListed
	SimulationView
	SignedChat
	ProfileKeys
	InfoChatKey
	ServerDataPreviews
	NumberedParsers
	SystemChatTyped
	LoginProperties
	DeathLocation
	ChatSeen
	ProfileKeysLinked
	LoginUUID
	ServerDataSecure
	ChatSessions
	PlayerInfoBits
	ServerDataRequired
	PortalCooldown
	Configuration
	LoginUUIDAlways
	PlayerSpawnsAsEntity
	PacksLostInConfiguration
	ComponentNBT
	PackIDs
	DimensionByNumber
	PlainCommands
	EncryptionAuthenticates
	RegistriesOnce
	LoginStrict
	TeleportVelocity
	EntitySync
	ClientParticles
	InfoListOrder
	InfoHat
	VehicleOnGround
	SeenChecksum
	ComponentSnakeCase
	RotationRelative
	PackedVelocity
	LoginSessionID
	JoinOnlineMode
	CompactGameMode
	TeleportConfirmHasPosition
	SteppedMoves
	SteppedSync
	PostEffectsStay
	numTraits
)

// traits says what each trait is and which versions of the game have it: from since on, and before until if that is not
// 0.
var traits = [numTraits]struct {
	name         string
	since, until int32
	about        string
}{
	AttachRides:              {"AttachRides", 0, V1_9, "attach_entity seats riders, and ends in whether it is only a leash"},
	PackHash:                 {"PackHash", 0, V1_10, "answers about resource packs begin with the pack's hash"},
	OffHand:                  {"OffHand", V1_9, 0, "client information has the main hand, and the chat mode as a VarInt"},
	EntityPlaceF64:           {"EntityPlaceF64", V1_9, 0, "places of entities are f64 and moves 1/4096 block in an i16; before 1/32 block in an i32 and an i8"},
	SpawnUUID:                {"SpawnUUID", V1_9, 0, "spawns of all entities have a UUID; before, only those of players"},
	TeleportID:               {"TeleportID", V1_9, 0, "the server's position packet has an id, which the client confirms"},
	SuggestionsInBlock:       {"SuggestionsInBlock", V1_9, 0, "requests for completion say whether they come from a command block (below CommandTree)"},
	DimensionI32:             {"DimensionI32", V1_9_1, 0, "join game has the dimension as an i32, before as an i8 (below NamedWorlds)"},
	TitleWithActionBar:       {"TitleWithActionBar", V1_11, 0, "the title packet has the action bar as its action 2, and reset as 5 (below TitlePackets)"},
	LivingTypeVarInt:         {"LivingTypeVarInt", V1_11, 0, "spawn_entity_living has the kind as a VarInt, before as a byte"},
	TranslatedReasons:        {"TranslatedReasons", V1_12, 0, "the client shows translated reasons of a disconnect in every state"},
	KeepAliveI64:             {"KeepAliveI64", V1_12_2, 0, "keep-alives are an i64, before a VarInt"},
	NamespacedChannels:       {"NamespacedChannels", V1_13, 0, "plugin channels are resource locations, and servers can ask in login"},
	CommandTree:              {"CommandTree", V1_13, 0, "there is a command tree, and completion has an id and ranges"},
	RespawnDifficulty:        {"RespawnDifficulty", 0, V1_14, "join game and respawn have the difficulty"},
	SpawnTypeVarInt:          {"SpawnTypeVarInt", V1_14, 0, "spawn_entity has the kind as a VarInt, before as a byte"},
	SpawnMetadata:            {"SpawnMetadata", 0, V1_15, "spawns of players end in metadata"},
	HashedSeed:               {"HashedSeed", V1_15, 0, "join game and respawn have the hashed seed"},
	NamedWorlds:              {"NamedWorlds", V1_16, 0, "worlds have names, before the number of their dimension"},
	HexColors:                {"HexColors", V1_16, 0, "components know all colours, and contents of a hover"},
	BinaryUUID:               {"BinaryUUID", V1_16, 0, "login success has the UUID as 16 bytes, before as text"},
	ChatSender:               {"ChatSender", V1_16, 0, "a line of chat names its sender's UUID (below SignedChat)"},
	HardcoreFlag:             {"HardcoreFlag", V1_16_2, 0, "join game has hardcore as a bool of its own, before in the game mode, and counts as VarInts"},
	DimensionInline:          {"DimensionInline", V1_16_2, V1_19, "join game and respawn carry the dimension's type as NBT"},
	TitlePackets:             {"TitlePackets", V1_17, 0, "titles and the action bar are packets of their own"},
	ClientFiltering:          {"ClientFiltering", V1_17, 0, "client information says whether text is filtered"},
	TeleportDismount:         {"TeleportDismount", V1_17, V1_19_4, "the server's position packet ends in whether the player leaves a vehicle"},
	ClientListed:             {"ClientListed", V1_18, 0, "client information says whether the player may be listed"},
	SimulationView:           {"SimulationView", V1_18, 0, "join game has the simulation distance"},
	SignedChat:               {"SignedChat", V1_19, 0, "chat is signed, commands are packets of their own, and system_chat has the server's lines"},
	ProfileKeys:              {"ProfileKeys", V1_19, V1_19_3, "login start and encryption response have the player's chat key"},
	InfoChatKey:              {"InfoChatKey", V1_19, 0, "entries of the player list have a chat key"},
	ServerDataPreviews:       {"ServerDataPreviews", V1_19, V1_19_3, "server_data says whether chat is previewed"},
	NumberedParsers:          {"NumberedParsers", V1_19, 0, "parsers of a command tree go by number, before by name"},
	SystemChatTyped:          {"SystemChatTyped", V1_19, V1_19_1, "system_chat ends in a number of a chat type, after in whether it is for the action bar"},
	LoginProperties:          {"LoginProperties", V1_19, 0, "login success has the profile's properties"},
	DeathLocation:            {"DeathLocation", V1_19, 0, "join game and respawn have where the player died"},
	ChatSeen:                 {"ChatSeen", V1_19_1, 0, "chat says which messages the client has seen"},
	ProfileKeysLinked:        {"ProfileKeysLinked", V1_19_1, V1_19_3, "chat keys are certified together with their owner's UUID"},
	LoginUUID:                {"LoginUUID", V1_19_1, 0, "login start has the UUID that the client takes for its own, behind a bool (below LoginUUIDAlways)"},
	ServerDataSecure:         {"ServerDataSecure", V1_19_1, V1_20_5, "server_data says whether chat must be signed"},
	ChatSessions:             {"ChatSessions", V1_19_3, 0, "signatures have 256 bytes without a length, and what was seen is a window of 20"},
	PlayerInfoBits:           {"PlayerInfoBits", V1_19_3, 0, "player_info has its actions as bits, and player_remove takes players off the list"},
	ServerDataRequired:       {"ServerDataRequired", V1_19_4, 0, "server_data always has a description, and the icon as bytes"},
	PortalCooldown:           {"PortalCooldown", V1_20, 0, "join game and respawn have the portal cooldown"},
	Configuration:            {"Configuration", V1_20_2, 0, "there is a configuration state between login and play, and join game has no registries"},
	LoginUUIDAlways:          {"LoginUUIDAlways", V1_20_2, 0, "login start has the UUID without a bool"},
	PlayerSpawnsAsEntity:     {"PlayerSpawnsAsEntity", V1_20_2, 0, "bodies of players come by spawn_entity"},
	PacksLostInConfiguration: {"PacksLostInConfiguration", V1_20_2, V1_20_3, "a client forgets its resource pack when it is configured, and cannot be sent it there"},
	ComponentNBT:             {"ComponentNBT", V1_20_3, 0, "components are NBT in configuration and play, before JSON"},
	PackIDs:                  {"PackIDs", V1_20_3, 0, "a client keeps several resource packs, by UUID"},
	DimensionByNumber:        {"DimensionByNumber", V1_20_5, 0, "join game and respawn have the dimension's type as a number"},
	PlainCommands:            {"PlainCommands", V1_20_5, 0, "commands without signed arguments are text alone"},
	EncryptionAuthenticates:  {"EncryptionAuthenticates", V1_20_5, 0, "encryption request says whether the client reports to the session server"},
	RegistriesOnce:           {"RegistriesOnce", V1_20_5, 0, "registries come entry by entry, and a client takes no entry twice in one configuration"},
	LoginStrict:              {"LoginStrict", V1_20_5, V1_21_2, "login success ends in whether the client leaves over packets it cannot read"},
	TeleportVelocity:         {"TeleportVelocity", V1_21_2, 0, "the server's position packet and entity_teleport have velocities, and flags in an i32"},
	EntitySync:               {"EntitySync", V1_21_2, 0, "entities are set to a place by sync_entity_position"},
	ClientParticles:          {"ClientParticles", V1_21_2, 0, "client information has the amount of particles"},
	InfoListOrder:            {"InfoListOrder", V1_21_2, 0, "player_info has the bit 64"},
	InfoHat:                  {"InfoHat", V1_21_4, 0, "player_info has the bit 128"},
	VehicleOnGround:          {"VehicleOnGround", V1_21_4, 0, "the client's vehicle_move ends in whether it stands on the ground"},
	SeenChecksum:             {"SeenChecksum", V1_21_5, 0, "what was seen of the chat ends in a checksum"},
	ComponentSnakeCase:       {"ComponentSnakeCase", V1_21_5, 0, "components have click_event and hover_event, before clickEvent and hoverEvent"},
	RotationRelative:         {"RotationRelative", V1_21_9, 0, "player_rotation says of each angle whether it is added"},
	PackedVelocity:           {"PackedVelocity", V1_21_9, 0, "spawn_entity has the velocity packed, and in front of the angles"},
	LoginSessionID:           {"LoginSessionID", V26_2, 0, "login success ends in the session's UUID"},
	JoinOnlineMode:           {"JoinOnlineMode", V26_2, 0, "the last byte but one of join game says whether the player was authenticated"},
	CompactGameMode:          {"CompactGameMode", V26_3, 0, "join game and respawn have the game mode as a VarInt, and the previous one as an optional VarInt"},
	TeleportConfirmHasPosition: {"TeleportConfirmHasPosition", V26_3, 0,
		"teleport_confirm has the place and the look, and no position_look follows it"},
	SteppedMoves:    {"SteppedMoves", V26_3, 0, "moves of entities are one or several steps, with the ground in their count"},
	SteppedSync:     {"SteppedSync", V26_3, 0, "sync_entity_position is a place or several steps, without velocity"},
	PostEffectsStay: {"PostEffectsStay", V26_3, 0, "a client keeps the list of post_effects until it gets another"},
}

// String returns the trait's name, as files of versions have it.
func (t Trait) String() string { return traits[t].name }

// About returns one line on what the trait means.
func (t Trait) About() string { return traits[t].about }

// Traits lists all traits, in the order in which the game got them.
func Traits() []Trait {
	all := make([]Trait, numTraits)
	for i := range all {
		all[i] = Trait(i)
	}
	return all
}

// TraitByName finds a trait by its name, whatever the case.
func TraitByName(name string) (Trait, bool) {
	for t, x := range traits {
		if strings.EqualFold(x.name, name) {
			return Trait(t), true
		}
	}
	return 0, false
}

// playerTypes has the numbers of players among the kinds of entities, where they are spawned like any other.
var playerTypes = [...]struct{ since, number int32 }{
	{V1_20_2, 122}, {V1_20_3, 124}, {V1_20_5, 128}, {V1_21_2, 148}, {V1_21_4, 147}, {V1_21_5, 148}, {V1_21_6, 149},
	{V1_21_9, 151}, {V1_21_11, 155}, {V26_2, 156}, {V26_3, 159},
}

func playerTypeOf(protocol int32) (number int32) {
	for _, t := range playerTypes {
		if protocol >= t.since {
			number = t.number
		}
	}
	return number
}

// traitSet is a set of traits.
type traitSet [(numTraits + 63) / 64]uint64

func (s *traitSet) has(t Trait) bool { return s[t/64]&(1<<(t%64)) != 0 }

func (s *traitSet) set(t Trait, on bool) {
	if on {
		s[t/64] |= 1 << (t % 64)
	} else {
		s[t/64] &^= 1 << (t % 64)
	}
}

// traitsOf returns the traits of a version of the game.
func traitsOf(protocol int32) (s traitSet) {
	for t, x := range traits {
		s.set(Trait(t), protocol >= x.since && (x.until == 0 || protocol < x.until))
	}
	return s
}
