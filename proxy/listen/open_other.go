//go:build !linux

package listen

import "net"

func listenConfig() net.ListenConfig { return net.ListenConfig{KeepAliveConfig: probing} }
