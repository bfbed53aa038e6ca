package wire

// frameTicks has the duration of each of the 32 configurations in an Opus packet's first byte, in units of 2.5 ms (RFC
// 6716, table 2).
var frameTicks = [32]uint8{
	4, 8, 16, 24, // SILK narrowband
	4, 8, 16, 24, // SILK mediumband
	4, 8, 16, 24, // SILK wideband
	4, 8, // hybrid super-wideband
	4, 8, // hybrid fullband
	1, 2, 4, 8, // CELT narrowband
	1, 2, 4, 8, // CELT wideband
	1, 2, 4, 8, // CELT super-wideband
	1, 2, 4, 8, // CELT fullband
}

// OpusOK tells whether the packet is one 20 ms mono frame. It looks only at its first byte (configuration, stereo flag,
// frame count code): nine values pass, and behind them any bytes decode to 960 samples. This product chose to check it;
// a stray duration would break every listener's timing.
func OpusOK(opus []byte) bool {
	if len(opus) == 0 || len(opus) > MaxOpus {
		return false
	}
	const stereoAndCode = 1<<2 | 3
	toc := opus[0]
	return toc&stereoAndCode == 0 && frameTicks[toc>>3] == 8
}
