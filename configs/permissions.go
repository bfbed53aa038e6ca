package configs

// Permissions is who may do what; package bridge/perm has the rules and checks them.
type Permissions struct {
	Groups    map[string]PermissionGroup  `yaml:"groups"`
	Players   map[string]PermissionPlayer `yaml:"players"`   // by UUID or name
	Operators map[int]string              `yaml:"operators"` // from which operator level on a player is in which group
}

// PermissionGroup is nodes under a name. The group "default" is everybody's.
type PermissionGroup struct {
	Parents []string `yaml:"parents,omitempty"`
	Nodes   []string `yaml:"nodes"`
}

// PermissionPlayer is what one player has besides everybody.
type PermissionPlayer struct {
	Groups []string `yaml:"groups,omitempty"`
	Nodes  []string `yaml:"nodes,omitempty"`
}
