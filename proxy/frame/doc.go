// Package frame moves Minecraft frames between sockets: length prefixes, compression and the cipher. It promises that a
// frame nobody needs to look at costs no allocation, no inflating and no copy: its packet id is peeked, and runs of
// frames are handed on as the bytes that came in.
package frame
