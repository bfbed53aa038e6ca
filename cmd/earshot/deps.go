package main

import (
	_ "github.com/Tnze/go-mc/chat"
	_ "github.com/Tnze/go-mc/nbt"
	_ "github.com/Tnze/go-mc/net"
	_ "github.com/Tnze/go-mc/offline"
	_ "github.com/Tnze/go-mc/yggdrasil/user"
	_ "github.com/gobwas/ws"
	_ "github.com/goccy/go-yaml"
	_ "github.com/google/uuid"
	_ "github.com/hraban/opus"
	_ "github.com/klauspost/compress/zlib"
	_ "github.com/pires/go-proxyproto"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/spf13/pflag"
	_ "go.uber.org/goleak"
	_ "golang.org/x/time/rate"
	_ "golang.org/x/sync/errgroup"
)

func main() {}
