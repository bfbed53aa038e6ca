package proto

import (
	"maps"
	"slices"
)

// gameNames has the packets under the game's own names, as its data generator writes them in packets.json, without
// "minecraft:". Versions from before the game named its packets are left out. A packet that changed its name stands
// there with both.
var gameNames = [numStates][numDirs]map[string]Packet{
	Handshake: {Serverbound: {"intention": SetProtocol}},
	Status: {
		Serverbound: {"status_request": StatusRequest, "ping_request": StatusPing},
		Clientbound: {"status_response": StatusResponse, "pong_response": StatusPing},
	},
	Login: {
		Serverbound: {
			"hello": LoginStart, "key": EncryptionBegin, "custom_query_answer": LoginPluginResponse,
			"login_acknowledged": LoginAcknowledged, "cookie_response": CookieResponse,
		},
		Clientbound: {
			"login_disconnect": Disconnect, "hello": EncryptionBegin, "login_finished": LoginSuccess, "game_profile": LoginSuccess,
			"login_compression": SetCompression, "custom_query": LoginPluginRequest, "cookie_request": CookieRequest,
		},
	},
	Config: {
		Serverbound: {
			"client_information": ClientInformation, "cookie_response": CookieResponse, "custom_payload": CustomPayload,
			"finish_configuration": FinishConfiguration, "keep_alive": KeepAlive, "pong": Pong, "resource_pack": ResourcePackReceive,
			"select_known_packs": SelectKnownPacks, "custom_click_action": CustomClickAction, "accept_code_of_conduct": AcceptCodeOfConduct,
		},
		Clientbound: {
			"cookie_request": CookieRequest, "custom_payload": CustomPayload, "disconnect": Disconnect,
			"finish_configuration": FinishConfiguration, "keep_alive": KeepAlive, "ping": Ping, "reset_chat": ResetChat,
			"registry_data": RegistryData, "resource_pack_pop": RemoveResourcePack, "resource_pack_push": AddResourcePack,
			"post_effects": PostEffects, "store_cookie": StoreCookie, "transfer": Transfer, "update_enabled_features": FeatureFlags,
			"update_tags": Tags, "select_known_packs": SelectKnownPacks, "custom_report_details": CustomReportDetails,
			"server_links": ServerLinks, "clear_dialog": ClearDialog, "show_dialog": ShowDialog, "code_of_conduct": CodeOfConduct,
		},
	},
	Play: {
		Serverbound: {
			"accept_teleportation": TeleportConfirm, "chat_ack": MessageAcknowledgement, "chat_command": ChatCommand,
			"chat_command_signed": ChatCommandSigned, "chat": ChatMessage, "chat_session_update": ChatSessionUpdate,
			"chunk_batch_received": ChunkBatchReceived, "client_command": ClientCommand, "client_tick_end": TickEnd,
			"client_information": ClientInformation, "command_suggestion": TabComplete,
			"configuration_acknowledged": ConfigurationAcknowledged, "cookie_response": CookieResponse, "custom_payload": CustomPayload,
			"keep_alive": KeepAlive, "move_player_pos": Position, "move_player_pos_rot": PositionLook, "move_player_rot": Look,
			"move_player_status_only": Flying, "move_vehicle": VehicleMove, "paddle_boat": SteerBoat, "ping_request": PingRequest,
			"player_abilities": Abilities, "player_command": EntityAction, "player_input": PlayerInput, "player_loaded": PlayerLoaded,
			"pong": Pong, "resource_pack": ResourcePackReceive, "teleport_to_entity": Spectate, "custom_click_action": CustomClickAction,
		},
		Clientbound: {
			"bundle_delimiter": BundleDelimiter, "add_entity": SpawnEntity, "boss_event": BossBar, "change_difficulty": Difficulty,
			"chunk_batch_finished": ChunkBatchFinished, "chunk_batch_start": ChunkBatchStart, "clear_titles": ClearTitles,
			"command_suggestions": TabComplete, "commands": DeclareCommands, "cookie_request": CookieRequest,
			"custom_chat_completions": ChatSuggestions, "custom_payload": CustomPayload, "delete_chat": HideMessage,
			"disconnect": Disconnect, "disguised_chat": ProfilelessChat, "entity_event": EntityStatus,
			"entity_position_sync": SyncEntityPosition, "forget_level_chunk": UnloadChunk, "game_event": GameStateChange,
			"keep_alive": KeepAlive, "light_update": UpdateLight, "level_chunk_with_light": MapChunk, "login": JoinGame, "move_entity_pos": RelEntityMove,
			"move_entity_pos_rot": EntityMoveLook, "move_minecart_along_track": MoveMinecart, "move_entity_rot": EntityLook,
			"move_vehicle": VehicleMove, "ping": Ping, "pong_response": PingResponse, "player_abilities": Abilities,
			"player_chat": PlayerChat, "player_info_remove": PlayerRemove, "player_info_update": PlayerInfo,
			"player_position": Position, "player_rotation": PlayerRotation, "remove_entities": EntityDestroy,
			"reset_score": ResetScore, "resource_pack_pop": RemoveResourcePack, "resource_pack_push": AddResourcePack,
			"post_effects": PostEffects, "respawn": Respawn, "rotate_head": EntityHeadRotation, "server_data": ServerData,
			"set_action_bar_text": ActionBar, "set_camera": Camera, "set_chunk_cache_center": UpdateViewPosition,
			"set_chunk_cache_radius": UpdateViewDistance, "set_default_spawn_position": SpawnPosition,
			"set_display_objective": ScoreboardDisplayObjective, "set_entity_data": EntityMetadata, "set_entity_link": AttachEntity,
			"set_health": UpdateHealth, "set_held_slot": HeldItemSlot, "set_objective": ScoreboardObjective, "set_passengers": SetPassengers,
			"set_player_team": Teams, "set_score": ScoreboardScore, "set_simulation_distance": SimulationDistance,
			"set_subtitle_text": SetTitleSubtitle, "set_time": UpdateTime, "set_title_text": SetTitleText,
			"set_titles_animation": SetTitleTime, "start_configuration": StartConfiguration, "store_cookie": StoreCookie,
			"system_chat": SystemChat, "tab_list": PlayerlistHeader, "teleport_entity": EntityTeleport, "transfer": Transfer,
			"update_tags": Tags, "custom_report_details": CustomReportDetails, "server_links": ServerLinks,
			"clear_dialog": ClearDialog, "show_dialog": ShowDialog,
		},
	},
}

// GameNames returns the game's names of the packets of one state and direction that have one here.
func GameNames(s State, d Dir) []string { return slices.Sorted(maps.Keys(gameNames[s][d])) }

// ByGameName finds the packet with that name in the game, without "minecraft:".
func ByGameName(s State, d Dir, name string) (Packet, bool) {
	p, ok := gameNames[s][d][name]
	return p, ok
}

// StateByName finds a state by its String, or by its name in the game's reports.
func StateByName(name string) (State, bool) {
	for s := range numStates {
		if s.String() == name {
			return s, true
		}
	}
	return 0, false
}

// DirByName finds a direction by its String, which is also its name in the game's reports.
func DirByName(name string) (Dir, bool) {
	for d := range numDirs {
		if d.String() == name {
			return d, true
		}
	}
	return 0, false
}
