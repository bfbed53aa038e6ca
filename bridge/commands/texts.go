package commands

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/earshot-mc/earshot/proxy/packet"
)

// key names a text.
type key string

// english has every text, in MiniMessage, with <values> in it. Other languages are in the configuration.
var english = map[key]string{
	"usage":           "<red>Type <yellow><usage></yellow>.",
	"unknown":         "<red>There is no command <yellow><command></yellow>. Type <yellow>help</yellow> for a list.",
	"line-long":       "<red>That line is too long to be a command: at most <yellow><count></yellow> bytes.",
	"unknown-instead": "<red>There is no command <yellow><command></yellow> here. Type <yellow><instead></yellow>.",
	"not-allowed":     "<red>You may not do that.",
	"too-fast":        "<red>Not so fast, please.",
	"failed":          "<red>That did not work: <error>",
	"internal":        "<red>Internal error. The log has more about it.",
	"player-only":     "<red>Only somebody in the game can do that.",
	"no-player":       "<red>There is no player <yellow><player></yellow> here.",
	"no-server":       "<red>There is no server <yellow><server></yellow>. Servers: <yellow><servers></yellow>.",

	// What each command does, one line of help.
	"help-line":                 "<yellow><usage></yellow><gray>: <what>",
	"help-bare":                 "<yellow><usage></yellow>",
	"help-more":                 "<gray>For the parts of a command, type: <yellow><form></yellow>.",
	"help-server":               "takes you to a server, or lists the servers",
	"help-glist":                "counts the players on all servers, or names them",
	"help-find":                 "says which server a player is on",
	"help-send":                 "sends players to a server: one, all, all on your server, or all on +server",
	"help-alert":                "shows a message to everybody",
	"help-ping":                 "measures your connection, or that of another player",
	"help-transfer":             "sends players to another address, from Minecraft 1.20.5 on",
	"help-hub":                  "takes you to the lobby",
	"help-voice":                "mutes players, says who hears whom, and gives voices to others",
	"help-earshot":              "looks after this program: its version, state and settings",
	"help-shutdown":             "stops Earshot; players are told the reason",
	"help-earshot-version":      "says which release this is",
	"help-earshot-status":       "shows players, memory and servers with trouble",
	"help-earshot-reload":       "reads the settings again",
	"help-earshot-dump":         "writes a file that helps to find a fault",
	"help-earshot-drain":        "keeps new players off a server, and takes away those who are there",
	"help-earshot-help":         "says what commands do",
	"help-voice-link":           "gives you a link to talk from your browser",
	"help-voice-code":           "gives you letters to type on the voice page, where you cannot click",
	"help-voice-mic":            "opens or closes the microphone of your voice page",
	"help-voice-mute":           "mutes a player for 30s, 10m, 1h30m, 7d, or until unmuted",
	"help-voice-unmute":         "lifts the mute of a player",
	"help-voice-muteall":        "mutes everybody who is not exempt",
	"help-voice-mutes":          "lists who is muted, by whom and for how long",
	"help-voice-why":            "says why one player hears another, or does not",
	"help-voice-group-list":     "lists the groups of players",
	"help-voice-group-info":     "says who is in a group and whose it is",
	"help-voice-group-rename":   "gives a group another name",
	"help-voice-group-kick":     "takes a player out of the group",
	"help-voice-group-delete":   "deletes a group",
	"help-voice-domain-create":  "makes a domain, whose members all hear each other, wherever they are",
	"help-voice-domain-delete":  "deletes a domain",
	"help-voice-domain-add":     "puts players into a domain",
	"help-voice-domain-remove":  "takes players out of a domain",
	"help-voice-domain-list":    "lists domains with their members",
	"help-voice-listen-add":     "lets a player hear a domain without being heard by it",
	"help-voice-listen-remove":  "ends what listen add began",
	"help-voice-listen-list":    "lists who listens to which domain",
	"help-voice-edge-add":       "lets one player hear another, wherever they are",
	"help-voice-edge-remove":    "ends what edge add began",
	"help-voice-edge-list":      "lists who hears whom by edge add",
	"help-voice-speaker-create": "makes a loudspeaker where you stand, or at a place",
	"help-voice-speaker-remove": "takes a loudspeaker away",
	"help-voice-speaker-move":   "moves a loudspeaker",
	"help-voice-speaker-volume": "sets how loud a loudspeaker is",
	"help-voice-speaker-range":  "sets how far a loudspeaker is heard, in blocks",
	"help-voice-speaker-allow":  "sets who hears a loudspeaker",
	"help-voice-speaker-list":   "lists loudspeakers and what they play",
	"help-voice-speaker-play":   "plays a file from the sounds folder",
	"help-voice-speaker-relay":  "makes a loudspeaker carry a player's voice",
	"help-voice-speaker-stop":   "makes a loudspeaker silent",

	"server-on":             "<gray>You are on <yellow><server></yellow>.",
	"server-none":           "<gray>You are on no server yet.",
	"server-list":           "<gray>Servers: ",
	"server-entry":          "<yellow><server></yellow>",
	"server-here":           "<green><bold><server></bold></green>",
	"server-down":           "<dark_gray><strikethrough><server></strikethrough></dark_gray>",
	"server-draining":       "<gold><server></gold>",
	"server-separator":      "<gray>, ",
	"server-hover":          "Players: <count>. Click to go there.",
	"server-hover-on":       "Players: <count>. You are here.",
	"server-hover-off":      "Not reachable at the moment.",
	"server-hover-draining": "Players: <count>. It is being drained and takes nobody.",
	"server-restricted":     "<red>Server <yellow><server></yellow> is not for everybody: you need the permission <yellow><permission></yellow>.",
	"draining":              "<red>Server <yellow><server></yellow> is being drained and takes nobody at the moment.",
	"connecting":            "<gray>To <yellow><server></yellow> …",
	"connected":             "<red>You are on <yellow><server></yellow> already.",
	"connected-other":       "<red><yellow><player></yellow> is on <yellow><server></yellow> already.",
	"connected-already":     "<red>Already on <yellow><server></yellow>.",
	"connecting-already":    "<red>Already on the way to <yellow><server></yellow>.",
	"server-gone":           "<red>There is no server <yellow><server></yellow> any more.",
	"too-much":              "<red>Too much is waiting to be sent to this player.",
	"player-gone":           "<red>This player has left.",
	"relayed":               "<red>This player's version of the game is not known here: they can be sent neither messages nor to other servers.",

	// On the screen of somebody who is disconnected, or as a <reason>.
	"kick-too-often":      "Your network logs in too often. Try again in <seconds> s.",
	"kick-crowded":        "Too many are connecting at the moment. Try again in a moment.",
	"kick-version":        "Your version of the game is not known here, and its login is different. Use <versions>, or tell the administrator.",
	"kick-name":           "This name is not allowed here: use 1 to 16 letters, digits and underscores.",
	"kick-name-taken":     "Somebody is already playing here under this name.",
	"kick-ending":         "Your last session is still ending. Try again in a moment.",
	"kick-encryption":     "The encrypted login failed. Restart the game and try again.",
	"kick-host":           "Nobody can join by this address. Use the one that you were given.",
	"kick-bedrock":        "Players of Bedrock Edition cannot join here.",
	"kick-bedrock-data":   "The server cannot tell who you are. Its administrator finds the reason in its log.",
	"kick-no-server":      "No server is available. Try again in a moment.",
	"kick-restricted":     "You may not join server <server>. Ask its administrators whether you can.",
	"kick-draining":       "Server <server> is being emptied and takes nobody at the moment. Try again later.",
	"kick-drained":        "Server <server> is being emptied, and no other server takes you: <reason>",
	"kick-unanswered":     "Your client did not answer in time.",
	"kick-overflow":       "Too many messages before a server was ready.",
	"kick-flood":          "Your game sends more than this server takes. If you have added mods, tell the administrator which.",
	"kick-protocol":       "Protocol error: <what>",
	"kick-timeout":        "Timed out.",
	"kick-internal":       "Internal error. Join again, and tell the administrator if it comes back.",
	"kick-restart":        "The server is restarting.",
	"backend-closed":      "Server <server> closed the connection.",
	"backend-silent":      "Server <server> does not answer any more.",
	"backend-oversized":   "Server <server> sent a packet that is too large.",
	"backend-unreadable":  "Server <server> sent a packet that cannot be read.",
	"backend-broken":      "The connection to server <server> is lost.",
	"backend-slow":        "Server <server> does not let you in.",
	"backend-no-answer":   "Server <server> does not answer.",
	"backend-unreachable": "Cannot connect to server <server>.",
	"backend-other-mods":  "Server <server> has other mods than the server you joined. Leave the game and join it directly.",

	// Above the hot bar of a player who is not heard.
	"notice-soundboard-off": "The soundboard is switched off on this server",
	"notice-soundboard":     "You may not use the soundboard here",
	"notice-muted":          "Your voice is muted by the server",
	"notice-muted-for":      "Your voice is muted for <duration> more",
	"notice-muted-all":      "Everybody is muted",
	"notice-muted-all-for":  "Everybody is muted for <duration> more",
	"notice-reason":         ": <reason>",
	"notice-speak":          "You may not speak here",

	"transfer-refused": "<red>Server <yellow><server></yellow> wanted to send you to another address, which is not allowed here.",

	// In the server list, for players whose game is newer than the known ones.
	"newer": "<gold>Your game is newer than this proxy: you get in, without voice and commands.",

	"lost-server":   "<red>You lost server <yellow><server></yellow>: <white><reason>",
	"switch-failed": "<red>Cannot take you to <yellow><server></yellow>: <white><reason>",
	"limbo":         "<gold>You are in the waiting room of this network. <yellow>/server</yellow> shows where you can go.",
	"limbo-servers": "<gold>Earshot</gold> is running. This is its built-in world. To send players to your own servers, name them under <yellow>servers</yellow> and <yellow>try</yellow> in earshot.yml.",
	"held":          "<gold>You wait here. As soon as a server is back you are taken there.",
	"held-return":   "<gold>Server <yellow><server></yellow> is back. Taking you there …",
	"drained":       "<gold>Server <yellow><server></yellow> is being emptied. Taking you to <yellow><to></yellow> …",

	"glist-total":    "<gray>Players online: <yellow><count></yellow>.",
	"glist-server":   "<yellow><server></yellow><gray> (<count>)",
	"glist-names":    "<yellow><server></yellow><gray> (<count>): <white><names>",
	"glist-more":     "<names>, and <count> more",
	"glist-relayed":  "<player> (of version <version>, which is not known here: no voice, no commands)",
	"glist-down":     "<red> does not answer",
	"glist-draining": "<gold> draining",

	"find":            "<gray><yellow><player></yellow> is on <yellow><server></yellow>.",
	"find-restricted": "<gray><yellow><player></yellow> is on a server that you may not join.",
	"find-none":       "<gray><yellow><player></yellow> is on no server yet.",

	"send":      "<gray>On the way to <yellow><server></yellow>: <yellow><count></yellow>.",
	"send-none": "<red>There is nobody to send to <yellow><server></yellow>.",
	"sent":      "<gray><yellow><sender></yellow> sends you to <yellow><server></yellow>.",

	"hub-none": "<red>There is no lobby to go to at the moment.",
	"hub-here": "<red>You are in the lobby already.",

	"ping":         "<gray>Your ping: <yellow><ping> ms</yellow>.",
	"ping-other":   "<gray>Ping of <yellow><player></yellow>: <yellow><ping> ms</yellow>.",
	"ping-unknown": "<gray>The ping of <yellow><player></yellow> is not known yet.",

	"alert": "<dark_red>[<red>Alert</red>]</dark_red> ",

	"transfer":         "<gray>On the way to <yellow><address></yellow>: <yellow><count></yellow>.",
	"transfer-none":    "<red>There is nobody to transfer.",
	"transfer-old":     "<red>These clients are too old to be transferred (1.20.5 or later needed): <yellow><names></yellow>.",
	"transfer-address": "<red><yellow><address></yellow> is no address: write host or host:port.",

	"voice-no-player":     "<red>Nobody called <yellow><player></yellow> is or was here. For a player who has never been here, use the UUID.",
	"voice-which-player":  "<red>Several players were called <yellow><player></yellow>. Use the UUID of the one you mean: <ids>.",
	"voice-no-duration":   "<red><yellow><duration></yellow> is no duration. Type <yellow><form></yellow> with 30s, 10m, 1h30m or 7d, at most ten years, or with forever.",
	"voice-muted":         "<gray><yellow><player></yellow> is muted until unmuted by <yellow>/voice unmute</yellow>.",
	"voice-muted-for":     "<gray><yellow><player></yellow> is muted for <yellow><duration></yellow>.",
	"voice-not-muted":     "<red><yellow><player></yellow> is not muted.",
	"voice-unmuted":       "<gray>The mute of <yellow><player></yellow> is lifted.",
	"voice-all-muted":     "<gray>Everybody who is not exempt is muted until you type <yellow>/voice muteall off</yellow>.",
	"voice-all-not-muted": "<red>There is no mute of everybody.",
	"voice-all-unmuted":   "<gray>The mute of everybody is lifted. Mutes of single players stay: <yellow>/voice mutes</yellow> lists them.",
	"voice-mutes-none":    "<gray>Nobody is muted.",
	"voice-mutes-more":    "<gray>And <yellow><count></yellow> more.",
	"voice-mute-one":      "<yellow><player></yellow>",
	"voice-mute-all":      "<gold>everybody who is not exempt</gold>",
	"voice-mute-by":       "<gray>, by <yellow><by></yellow>",
	"voice-mute-left":     "<gray>, for <yellow><duration></yellow> more",
	"voice-mute-reason":   "<gray> Reason: <reason>",
	// To others who may mute, about what one of them has done.
	"staff-muted":       "<gray><yellow><by></yellow> mutes <yellow><player></yellow> until unmuted.",
	"staff-muted-for":   "<gray><yellow><by></yellow> mutes <yellow><player></yellow> for <yellow><duration></yellow>.",
	"staff-unmuted":     "<gray><yellow><by></yellow> lifts the mute of <yellow><player></yellow>.",
	"staff-all-muted":   "<gray><yellow><by></yellow> mutes everybody who is not exempt.",
	"staff-all-unmuted": "<gray><yellow><by></yellow> lifts the mute of everybody.",

	// To muted players.
	"mute-begins":         "<gold>Your voice is muted until the staff lifts it. Nobody hears you.",
	"mute-begins-for":     "<gold>Your voice is muted for <yellow><duration></yellow>. Nobody hears you.",
	"mute-begins-all":     "<gold>Everybody is muted until the staff lifts it. Nobody hears you.",
	"mute-begins-all-for": "<gold>Everybody is muted for <yellow><duration></yellow>. Nobody hears you.",
	"mute-ends":           "<green>Your voice is no longer muted.",
	"mute-ends-all":       "<green>The mute of everybody is over.",

	"voice-unstored": "<gold>Changes not stored yet: <yellow><count></yellow>. They are in force, but a restart now would lose them: <problem>.",

	// Clauses of one sentence, whose beginning and end are voice-why.
	"voice-link":         "Talk by voice: ",
	"voice-link-open":    "<aqua><underlined>[open the page]</underlined></aqua>",
	"voice-link-hover":   "Opens the voice page in your browser.",
	"voice-link-once":    "<gray> Works once, for 5 minutes; keep it to yourself.",
	"voice-code":         "Type <aqua><code></aqua> at <aqua><address></aqua> <gray>within 2 minutes. It works once; keep it to yourself.",
	"voice-mic":          "<gray>Your page has been told to open or close its microphone.",
	"voice-mic-none":     "<red>You have no voice page open. <yellow>/voice</yellow> gives you the link.",
	"voice-no-address":   "<red>Your game did not say by which address it joined, so there is no link. Ask the staff to set voice.public-url.",
	"only-players":       "<red>Only players can do this.",
	"voice-invite":       "<gray>You can talk to those around you from your browser: ",
	"voice-invite-open":  "<aqua>[/voice]</aqua>",
	"voice-invite-hover": "Click for a link to the voice page.",
	// What a player may know of why they do not hear somebody, on the voice page.
	"page-why-nobody":          "There is nobody called <player> whom you could hear.",
	"page-why-absent":          "<player> has not joined voice.",
	"page-why-yes":             "You hear <player>.",
	"page-why-muted":           "<player> is muted by the server.",
	"page-why-refused":         "<player> may not speak here.",
	"page-why-self":            "Nobody hears their own voice.",
	"page-why-deafened":        "You are deafened.",
	"page-why-no-listen":       "You may not listen here.",
	"page-why-spectator":       "<player> is a spectator.",
	"page-why-group":           "You or <player> are in a group that keeps others out.",
	"page-why-world":           "<player> is in another world.",
	"page-why-far":             "<player> is too far away.",
	"page-why-wait":            "It is not known yet where you both are. Wait a moment.",
	"voice-why":                "<gray><answer>.",
	"voice-why-absent":         "<player> has no voice connection",
	"voice-why-yes":            "<listener> hears <speaker>",
	"voice-why-no":             "<listener> does not hear <speaker>: ",
	"voice-why-percent":        " at <percent> %: ",
	"voice-why-distance":       "<distance> blocks away, and the range is <range>",
	"voice-why-whisper":        ", with a whisper",
	"voice-why-shout":          ", with a shout",
	"voice-why-group":          " at 100 %, from anywhere: both are in the group <group>",
	"voice-why-declared":       " at 100 %, from anywhere: a domain, a listen or an edge says so",
	"voice-why-muted":          "<speaker> is muted",
	"voice-why-muted-all":      "everybody is muted",
	"voice-why-muted-left":     ", for <seconds> s more",
	"voice-why-muted-reason":   ", for: <reason>",
	"voice-why-may-not-speak":  "<speaker> lacks socketsvc.speak",
	"voice-why-self":           "nobody hears their own voice",
	"voice-why-deafened":       "<listener> is deafened",
	"voice-why-may-not-listen": "<listener> lacks socketsvc.listen",
	"voice-why-servers":        "they are on different servers, <from> and <to>",
	"voice-why-hidden":         "the server hides <speaker> from <listener>",
	"voice-why-untold":         "<listener> has not received the roster with <speaker> on it yet",
	"voice-why-spectator":      "<speaker> is a spectator",
	"voice-why-grouped":        "<player> is in the group <group>",
	"voice-why-ungrouped":      "<player> is in no group",
	"voice-why-and-grouped":    ", <player> in the group <group>",
	"voice-why-and-ungrouped":  ", <player> in no group",
	"voice-why-unlisted":       "on <server>, <speaker> (<uuid> there) is neither on the player list of <listener> nor in their world",
	"voice-why-vanished":       "; <speaker> sees <seen> players and is hidden from <blind> of them: vanished",
	"voice-why-removed":        "<server> has taken the body of <speaker> away from <listener>, who is seen all the same (missing-bodies)",
	"voice-why-bodiless":       "both stand together on <server>, and neither is sent the other's body: two worlds of one name (missing-bodies)",
	"voice-why-ages":           "there are two worlds named <world>: they are <from> and <to> ticks old",
	"voice-why-seeds":          "there are two worlds named <world>: their seeds differ",
	"voice-why-worlds":         "<speaker> is in <from>, <listener> in <to>",
	"voice-why-nowhere":        "it is not known where <player> is",
	"voice-why-no-position":    "it is not known where one of them stands",

	"voice-fixed":                "<red>This comes from the configuration: take it out of <yellow><key></yellow> there.",
	"voice-domain-none":          "<red>There is no domain <yellow><domain></yellow>. <yellow>/voice domain list</yellow> lists them.",
	"voice-domain-taken":         "<red>There is a domain <yellow><domain></yellow> already.",
	"voice-domain-made":          "<gray>The domain <yellow><domain></yellow> is there. Members: <yellow><count></yellow>.",
	"voice-domain-deleted":       "<gray>The domain <yellow><domain></yellow> is gone.",
	"voice-domain-deleted-fixed": "<gray>What was added to the domain <yellow><domain></yellow> is gone. What the configuration says about it stays.",
	"voice-domain-added":         "<gray>In the domain <yellow><domain></yellow> now: <yellow><player></yellow>.",
	"voice-domain-in":            "<red><yellow><player></yellow> is in the domain <yellow><domain></yellow> already.",
	"voice-domain-removed":       "<gray>No longer in the domain <yellow><domain></yellow>: <yellow><player></yellow>.",
	"voice-domain-out":           "<red><yellow><player></yellow> is not in the domain <yellow><domain></yellow>.",
	"voice-domains-none":         "<gray>There are no domains.",
	"voice-domain-entry":         "<yellow><domain></yellow><gray> (<count>): <white><names>",
	"voice-listen-added":         "<gray><yellow><player></yellow> hears the domain <yellow><domain></yellow>, and is not heard by it.",
	"voice-listen-undeclared":    "<gold>There is no domain <yellow><domain></yellow>: <yellow><player></yellow> hears nothing until <yellow>/voice domain create</yellow> makes it.",
	"voice-listen-there":         "<red><yellow><player></yellow> listens to the domain <yellow><domain></yellow> already.",
	"voice-listen-removed":       "<gray><yellow><player></yellow> no longer listens to the domain <yellow><domain></yellow>.",
	"voice-listen-none":          "<red><yellow><player></yellow> does not listen to the domain <yellow><domain></yellow>.",
	"voice-listens-none":         "<gray>Nobody listens to a domain.",
	"voice-listen-entry":         "<yellow><player></yellow><gray> listens to <yellow><domain></yellow>",
	"voice-edge-added":           "<gray><yellow><listener></yellow> hears <yellow><speaker></yellow>, wherever both are.",
	"voice-edge-self":            "<red>Nobody hears their own voice: name two players.",
	"voice-edge-there":           "<red>There is an edge from <yellow><speaker></yellow> to <yellow><listener></yellow> already.",
	"voice-edge-removed":         "<gray>The edge from <yellow><speaker></yellow> to <yellow><listener></yellow> is gone.",
	"voice-edge-none":            "<red>There is no edge from <yellow><speaker></yellow> to <yellow><listener></yellow>.",
	"voice-edges-none":           "<gray>There are no edges.",
	"voice-edge-entry":           "<yellow><listener></yellow><gray> hears <yellow><speaker></yellow>",

	"voice-groups-none":      "<gray>There are no groups.",
	"voice-group-none":       "<red>There is no group <yellow><group></yellow>. <yellow>/voice group list</yellow> lists them.",
	"voice-group-entry":      "<yellow><group></yellow><gray>: <type>, members: <count>",
	"voice-group-locked":     "<gray>, with a password",
	"voice-group-persistent": "<gray>, persistent",
	"voice-group-owner":      "<gray>Owner: <yellow><player></yellow>. Id: <id>",
	"voice-group-members":    "<gray>Members: <white><names>",
	"voice-group-used":       "<gray>Last used: <white><date>",
	"voice-group-renamed":    "<gray>The group <yellow><group></yellow> is called <yellow><name></yellow> now.",
	"voice-group-bad-name":   "<red><yellow><name></yellow> is no name for a group: 1 to 24 characters that can be seen.",
	"voice-group-taken":      "<red>Another group is called <yellow><name></yellow>, or something that looks like it.",
	"voice-group-not-in":     "<red><yellow><player></yellow> is in no group.",
	"voice-group-kicked":     "<gray><yellow><player></yellow> is no longer in the group <yellow><group></yellow>.",
	"voice-group-deleted":    "<gray>The group <yellow><group></yellow> is gone.",

	"voice-no-number":          "<red><yellow><number></yellow> is no number from <least> to <most>.",
	"voice-speaker-none":       "<red>There is no speaker <yellow><speaker></yellow>. <yellow>/voice speaker list</yellow> lists them.",
	"voice-speaker-taken":      "<red>There is a speaker <yellow><speaker></yellow> already.",
	"voice-speaker-where":      "<red>Say where: write server, world, x, y and z behind the name, or stand there yourself.",
	"voice-speaker-entry":      "<yellow><speaker></yellow><gray>: <server> <world> <x> <y> <z>, volume <volume> %, range <range>",
	"voice-speaker-for":        "<gray>, for <white><names>",
	"voice-speaker-for-nobody": "<gray>, for nobody",
	"voice-speaker-sounds":     "<gray>, plays <yellow><file></yellow>",
	"voice-speaker-repeats":    "<gray>, plays <yellow><file></yellow> over and over",
	"voice-speaker-carries":    "<gray>, carries the voice of <yellow><player></yellow>",
	"voice-speaker-failed":     "<gray>, has ended: <red><problem>",
	"voice-speaker-removed":    "<gray>The speaker <yellow><speaker></yellow> is gone.",
	"voice-speaker-plays":      "<gray><yellow><speaker></yellow> plays <yellow><file></yellow>, which lasts <yellow><duration></yellow>.",
	"voice-speaker-loops":      "<gray><yellow><speaker></yellow> plays <yellow><file></yellow>, which lasts <yellow><duration></yellow>, over and over.",
	"voice-speaker-plays-on":   "<gray><yellow><speaker></yellow> plays <yellow><file></yellow>.",
	"voice-speaker-loops-on":   "<gray><yellow><speaker></yellow> plays <yellow><file></yellow> over and over.",
	"voice-speaker-relays":     "<gray><yellow><speaker></yellow> carries the voice of <yellow><player></yellow> to everybody who may hear them: on their server, or by a group or a declared voice.",
	"voice-speaker-stopped":    "<gray><yellow><speaker></yellow> is silent.",
	"voice-speaker-silent":     "<red><yellow><speaker></yellow> plays nothing.",
	"voice-speakers-none":      "<gray>There are no speakers.",

	"version": "<gold>Earshot</gold> <yellow><version></yellow>",

	"status-players":    "<gray>players: <yellow><count></yellow>",
	"status-uptime":     "<gray>running for: <yellow><duration></yellow>",
	"status-memory":     "<gray>memory: <yellow><count> MiB</yellow>",
	"status-goroutines": "<gray>goroutines: <yellow><count></yellow>",
	"status-draining":   "<gray>server <server>: <yellow>draining</yellow>",
	"status-open":       "<gray>server <server>: <yellow>breaker open after <count> failures</yellow>",
	"status-open-until": "<gray>server <server>: <yellow>breaker open after <count> failures, asked again in <duration></yellow>",
	"status-half-open":  "<gray>server <server>: <yellow>breaker half-open, on trial</yellow>",

	"reload-none":    "<gray>Reloaded: nothing changed.",
	"reloaded":       "<green>In force now: <yellow><change></yellow>",
	"reloaded-more":  "<green>And <yellow><count></yellow> more changes, which the log has.",
	"reload-restart": "<gold>Not in force: <yellow><change></yellow>",
	"reload-failed":  "<red>Nothing was changed: <error>",
	"drain-on":       "<gold>Server <yellow><server></yellow> takes no new players until you run this with <yellow>off</yellow>, or Earshot restarts. Players on it stay; use <yellow>move</yellow> to send them elsewhere.",
	"drain-move":     "<gold>Server <yellow><server></yellow> takes no new players until you run this with <yellow>off</yellow>, or Earshot restarts. Players on it are sent to other servers.",
	"drain-nobody":   "<gold>Nobody was on server <yellow><server></yellow>.",
	"drain-moved":    "<gold>Server <yellow><server></yellow>: <yellow><moved></yellow> of <yellow><count></yellow> moved",
	"drain-nowhere":  "<gold>; <yellow><count></yellow> have no other server: <yellow><names></yellow>",
	"drain-refused":  "<gold>; <yellow><count></yellow> stay, since no other server took them: <yellow><names></yellow>",
	"drain-left":     "<gold>; <yellow><count></yellow> left the game",
	"drain-limbo":    "<red>The built-in world cannot be drained: it is where players go when there is nothing else.",
	"drain-off":      "<green>Server <yellow><server></yellow> gets players again.",
	"dumped":         "<green>Written to <yellow><file></yellow>.",
	"shutdown":       "<gold>Stopping.",
	"shutdown-named": "<gold>Stopping: <reason>",
}

var placeholder = regexp.MustCompile(`<([a-z][a-z-]*)>`)

// isTag tells whether MiniMessage obeys <name>; unknown ones stay text.
func isTag(name string) bool {
	t, _ := packet.ParseText("<" + name + ">x")
	return t.String() == "x"
}

// values lists the values that a template has a place for, sorted, each once.
func values(template string) []string {
	var out []string
	for _, m := range placeholder.FindAllStringSubmatch(template, -1) {
		if !isTag(m[1]) {
			out = append(out, m[1])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Texts holds the answers in some languages.
type Texts struct {
	languages map[string]map[key]string // by lower-case tag: de, or de_at
}

// Keys lists the keys of all texts, sorted.
func Keys() []string {
	var out []string
	for k := range english {
		out = append(out, string(k))
	}
	slices.Sort(out)
	return out
}

// English returns every text, by its key.
func English() map[string]string {
	out := map[string]string{}
	for k, template := range english {
		out[string(k)] = template
	}
	return out
}

// PrintTexts writes every text in the form of a file of the folder of languages.
func PrintTexts(w io.Writer) {
	for _, k := range Keys() {
		fmt.Fprintf(w, "%s: %q\n", k, english[key(k)])
	}
}

// NewTexts adds languages to English, by tags as clients give them: de for all who speak German, de_at before it.
// Left-out texts are in English; en changes English itself. A template is MiniMessage and may use the <values> of the
// English one. The error names every fault, each beginning with the language and the key.
func NewTexts(languages map[string]map[string]string) (*Texts, error) {
	var wrong []error
	t := &Texts{map[string]map[key]string{}}
	for _, tag := range slices.Sorted(maps.Keys(languages)) {
		lang := map[key]string{}
		for _, k := range slices.Sorted(maps.Keys(languages[tag])) {
			template, have := languages[tag][k], english[key(k)]
			if have == "" {
				wrong = append(wrong, fmt.Errorf("%s.%s: there is no such text; earshot texts prints all there are", tag, k))
				continue
			}
			allowed := values(have)
			for _, v := range values(template) {
				if !slices.Contains(allowed, v) {
					wrong = append(wrong, fmt.Errorf("%s.%s: <%s> is neither a tag nor a value here; values are %v", tag, k, v, allowed))
				}
			}
			lang[key(k)] = template
		}
		tag = strings.ToLower(tag)
		if t.languages[tag] != nil {
			wrong = append(wrong, fmt.Errorf("%s: this language is there twice, in another case", tag))
		}
		t.languages[tag] = lang
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return t, nil
}

// template finds k in the language nearest to locale, as de_AT.
func (t *Texts) template(locale string, k key) string {
	locale = strings.ToLower(locale)
	short, _, _ := strings.Cut(locale, "_")
	for _, tag := range []string{locale, short, "en"} {
		if s, ok := t.languages[tag][k]; ok {
			return s
		}
	}
	return english[k]
}

// Say returns a text of the table for players with this locale; named are names and values in turn. These are the
// proxy's own words to players. A key that is not in the table is its own text, so that it is noticed.
func (t *Texts) Say(locale, k string, named ...string) packet.Text {
	if _, ok := english[key(k)]; !ok {
		return packet.Plain(k)
	}
	return t.text(locale, key(k), named...)
}

// told is an error that has a text of the table.
type told interface {
	error
	Told() (key string, named []string)
}

// Failure returns the text for an error: its own, or that it did not work.
func (t *Texts) Failure(locale string, err error) packet.Text {
	if own := told(nil); errors.As(err, &own) {
		k, named := own.Told()
		return t.Say(locale, k, named...)
	}
	return t.text(locale, "failed", "error", err.Error())
}

// text fills a template: named are names and values in turn. A value is text and nothing else, whatever is in it.
func (t *Texts) text(locale string, k key, named ...string) packet.Text {
	return fill(t.template(locale, k), named...)
}

func fill(template string, named ...string) packet.Text {
	pairs := make([]string, 0, len(named))
	for i := 0; i+1 < len(named); i += 2 {
		pairs = append(pairs, "<"+named[i]+">", escape(named[i+1]))
	}
	// A tag in front makes it MiniMessage for sure, which undoes escape.
	text, _ := packet.ParseText("<reset>" + strings.NewReplacer(pairs...).Replace(template))
	return text
}

// escape keeps tags and codes in s from being obeyed. Bytes that are no text could make a code of the rest beside one.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `<`, `\<`, "§", "").Replace(strings.ToValidUTF8(s, "\uFFFD"))
}
