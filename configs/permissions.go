package configs

// Permissions says who may do what; package bridge/perm has the rules and checks them.
type Permissions struct {
	Groups    map[string]PermissionGroup  `yaml:"groups"`
	Players   map[string]PermissionPlayer `yaml:"players"`   // by UUID or name
	Operators map[int]string              `yaml:"operators"` // from which operator level on a player is in which group
}

// PermissionGroup holds nodes under a name. The group "default" is everybody's.
type PermissionGroup struct {
	Parents []string `yaml:"parents,omitempty"`
	Nodes   []string `yaml:"nodes"`
}

// PermissionPlayer holds one player's own nodes and groups.
type PermissionPlayer struct {
	Groups []string `yaml:"groups,omitempty"`
	Nodes  []string `yaml:"nodes,omitempty"`
}
