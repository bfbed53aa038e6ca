package itest

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// conformance reads a document of rules, and says what is wrong with it: a rule without a test, a test that is not
// there. root is the directory of the module.
func conformance(doc, root string) (rules int, faults []string) {
	fault := func(n int, format string, args ...any) {
		faults = append(faults, fmt.Sprintf("line %d: ", n+1)+fmt.Sprintf(format, args...))
	}
	rooms := map[string]*testRoom{}
	section, last := "", map[string]int{}
	inSection := 0
	closeSection := func(n int) {
		if section != "" && inSection == 0 {
			fault(n, "section %s has no rule", section)
		}
	}
	lines := strings.Split(doc, "\n")
	for n, row := range lines {
		if title, ok := strings.CutPrefix(row, "## "); ok {
			closeSection(n)
			section, inSection = title, 0
			continue
		}
		if !strings.HasPrefix(row, "|") || row == "| | binds | rule | tests |" || row == "| --- | --- | --- | --- |" {
			continue
		}
		m := ruleRow.FindStringSubmatch(row)
		if m == nil {
			fault(n, "no rule: %s", row)
			continue
		}
		rules++
		inSection++
		letter, tests := m[1], testName.FindAllStringSubmatch(m[3], -1)
		number, _ := strconv.Atoi(m[2])
		if number != last[letter]+1 {
			fault(n, "%s%d does not follow %s%d", letter, number, letter, last[letter])
		}
		last[letter] = number
		if len(tests) == 0 {
			fault(n, "%s%s has no test", letter, m[2])
		}
		if rest := strings.TrimSpace(testName.ReplaceAllString(m[3], "")); rest != "" {
			fault(n, "%q is no test", rest)
		}
		for _, t := range tests {
			dir, name, of := t[1], t[2], strings.TrimPrefix(t[3], "/")
			if rooms[dir] == nil {
				rooms[dir] = readRoom(filepath.Join(root, dir))
			}
			if why := rooms[dir].lacks(name, of); why != "" {
				fault(n, "%s.%s: %s", dir, name, why)
			}
		}
	}
	closeSection(len(lines))
	return rules, faults
}

var (
	ruleRow  = regexp.MustCompile(`^\| ([A-Z])(\d+) \| (?:server|client|both|proxy) \| .*\. \| (.*) \|$`)
	testName = regexp.MustCompile("`([a-z/]+)\\.((?:Test|Fuzz)[A-Z]\\w*)(/[^`]+)?`")
)

// testRoom is the tests of a package.
type testRoom struct {
	err     error
	tests   map[string]*ast.FuncDecl
	vectors map[string][]string // by file: the first columns
}

// readRoom reads the test files that `go test` compiles here.
func readRoom(dir string) *testRoom {
	r := &testRoom{tests: map[string]*ast.FuncDecl{}, vectors: map[string][]string{}}
	ctx := build.Default
	ctx.BuildTags = append(ctx.BuildTags, "nolibopusfile")
	p, err := ctx.ImportDir(dir, 0)
	if err != nil {
		r.err = err
		return r
	}
	for _, name := range append(p.TestGoFiles, p.XTestGoFiles...) {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, 0)
		if err != nil {
			r.err = err
			return r
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && runs(fn) {
				r.tests[fn.Name.Name] = fn
			}
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, "testdata", "*.txt"))
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			r.err = err
			return r
		}
		for row := range strings.Lines(string(text)) {
			if first, _, ok := strings.Cut(row, "|"); ok {
				r.vectors[filepath.Base(name)] = append(r.vectors[filepath.Base(name)], strings.TrimSpace(first))
			}
		}
	}
	return r
}

// runs tells whether a function is a test that nothing keeps from running.
func runs(fn *ast.FuncDecl) bool {
	params := fn.Type.Params.List
	if len(params) != 1 || len(params[0].Names) != 1 || fn.Body == nil {
		return false
	}
	star, ok := params[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	kind := "T"
	if strings.HasPrefix(fn.Name.Name, "Fuzz") { // a test of its seeds
		kind = "F"
	}
	if sel, ok := star.X.(*ast.SelectorExpr); !ok || sel.Sel.Name != kind {
		return false
	}
	always := true
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		of, ok := sel.X.(*ast.Ident)
		if ok && slices.Contains(map[string][]string{
			params[0].Names[0].Name: {"Skip", "Skipf", "SkipNow"}, "testing": {"Short"}, "os": {"Getenv", "LookupEnv"},
		}[of.Name], sel.Sel.Name) {
			always = false
		}
		return true
	})
	return always
}

// lacks says what is missing for a test, and a case of it.
func (r *testRoom) lacks(name, of string) string {
	switch {
	case r.err != nil:
		return r.err.Error()
	case r.tests[name] == nil:
		return "there is no such test, or it may be skipped"
	case of != "" && !r.has(r.tests[name], of):
		return fmt.Sprintf("it has no case %q", of)
	}
	return ""
}

// has tells whether a test names a case, or a file of vectors that does.
func (r *testRoom) has(fn *ast.FuncDecl, of string) (found bool) {
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			s, err := strconv.Unquote(lit.Value)
			found = found || err == nil && (s == of || slices.Contains(r.vectors[s], of))
		}
		return true
	})
	return found
}

// TestConformance: each rule of these documents names tests that exist and always run, and none of the rules is lost.
func TestConformance(t *testing.T) {
	for file, want := range map[string]struct {
		rules    int // at least
		sections []string
	}{
		"voice/CONFORMANCE.md": {210, []string{
			"Connecting", "Audio", "Concealment", "Diagnosis", "Updating and going back", "Listener state", "Spatial audio",
			"Named speakers", "Soundboard", "Groups", "Server mute", "Whispering and shouting", "Declared voices",
			"What the protocol leaves open",
		}},
		"bridge/rooms/CONFORMANCE.md": {70, []string{
			"Frames", "Joining", "Coming back", "The clock", "States", "Binary states", "Acknowledgements", "Talking", "Moderation",
			"Shapes", "What the protocol leaves open",
		}},
		"bridge/walk/CONFORMANCE.md": {19, []string{"The wire", "Coming in", "Walking", "Limits"}},
		"proxy/CONFORMANCE.md": {130, []string{
			"Known faults of proxies", "Packets and versions", "Coming in", "Configuration and play", "Servers", "Switching", "Players",
			"Commands and chat", "Plugin messages", "Strangers and bounds", "Fallback and health", "Hosts",
			"Mods and Bedrock Edition", "Running it",
		}},
	} {
		doc, err := os.ReadFile(filepath.Join("..", file))
		if err != nil {
			t.Fatal(err)
		}
		rules, faults := conformance(string(doc), "..")
		for _, f := range faults {
			t.Errorf("%s, %s", file, f)
		}
		for _, section := range want.sections {
			if !strings.Contains(string(doc), "\n## "+section+"\n") {
				t.Errorf("%s has no section %q", file, section)
			}
		}
		if rules < want.rules {
			t.Errorf("%s has %d rules: some are lost", file, rules)
		}
	}
}

// What TestConformance would not let pass.
func TestConformanceSeesFaults(t *testing.T) {
	const good = "## One\n| | binds | rule | tests |\n| --- | --- | --- | --- |\n" +
		"| C1 | both | It does. | `voice.TestFirstLight` `voice/line.TestC2SVectors/deafen on` |\n"
	if n, faults := conformance(good, ".."); n != 1 || faults != nil {
		t.Fatalf("%d rules, %q", n, faults)
	}
	for what, c := range map[string]struct{ from, to, want string }{
		"no test":              {"`voice.TestFirstLight` `voice/line.TestC2SVectors/deafen on`", "to be done", "has no test"},
		"a word beside":        {"`voice.TestFirstLight`", "`voice.TestFirstLight` and more", `"and more" is no test`},
		"not a test's name":    {"`voice.TestFirstLight`", "`voice.BenchmarkX`", "is no test"},
		"a test that is gone":  {"TestFirstLight", "TestLastLight", "there is no such test"},
		"a function of a test": {"`voice.TestFirstLight`", "`voice.TestMain`", "there is no such test"},
		"a case that is gone":  {"deafen on", "deafen twice", `has no case "deafen twice"`},
		"a case of another":    {"deafen on", "roster of one", `has no case "roster of one"`},
		"no such package":      {"voice/line", "voice/lines", "cannot find"},
		"twice the same":       {"## One", "## One\n| C1 | both | It does. | `voice.TestFirstLight` |", "does not follow"},
		"a number left out":    {"| C1 |", "| C2 |", "does not follow"},
		"bound to nobody":      {"| both |", "| nobody |", "no rule"},
		"an empty section":     {"## One", "## None\n## One", "section None has no rule"},
	} {
		_, faults := conformance(strings.Replace(good, c.from, c.to, 1), "..")
		if !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, c.want) }) {
			t.Errorf("%s: %q, want %s", what, faults, c.want)
		}
	}
	for name, src := range map[string]string{
		"skipped":   `package x; import "testing"; func TestX(t *testing.T) { if testing.Short() { return } }`,
		"on demand": `package x; import ("os"; "testing"); func TestX(t *testing.T) { if os.Getenv("LONG") == "" { t.Skip() } }`,
		"no test":   `package x; import "testing"; func TestX(t testing.TB) {}`,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x_test.go", src, 0)
		if err != nil {
			t.Fatal(err)
		}
		if runs(f.Decls[len(f.Decls)-1].(*ast.FuncDecl)) {
			t.Errorf("%s: taken for a test that always runs", name)
		}
	}
}

// readmeTests are the tests of each row of the README's table, which itself is for people who run a network.
var readmeTests = map[string][]string{
	"Versions":              {"TestVersions", "TestVoice", "TestJoinWithEveryProtocol"},
	"Newer versions":        {"TestNewerRelease", "TestVersionByFile"},
	"One port":              {"TestPort"},
	"Reverse proxies":       {"TestReverseProxies"},
	"Limits":                {"TestHousehold", "TestStrangersCannotKeepOthersOut", "TestAnswersThatNobodyReads", "TestFloods", "TestTurnedAwayIsSaid"},
	"Login":                 {"TestOnline", "TestNotAuthenticated", "TestProfileKey", "TestReconfiguration"},
	"Backends":              {"TestLeastPlayers", "TestStrategies", "TestVoice", "TestForwarding"},
	"Switching":             {"TestSwitching", "TestManySwitches", "TestCleanUp"},
	"Fallback":              {"TestSwitching", "TestKicked", "TestReasonIsTranslated", "TestBudget"},
	"Coming back":           {"TestBroughtBack", "TestLeftAlone", "TestTurnedAway"},
	"Health":                {"TestBreaker", "TestInterval", "TestBroughtBack"},
	"Draining":              {"TestDraining", "TestDrainingSaysWhatItDid"},
	"Commands":              {"TestConsoleOnAPipe", "TestCommandsAndPermissions", "TestConsole", "TestReload"},
	"Reload":                {"TestReload", "TestReloadVoice", "TestReloadCertificate", "TestEveryKeyIsLive"},
	"Languages":             {"TestReloadLanguages", "TestTexts"},
	"`/earshot dump`":       {"TestReload"},
	"BungeeCord's channel":  {"TestBungeeCord", "TestBungeeCordIsForOnesOwn", "TestSubchannels", "TestBudget"},
	"Restricted servers":    {"TestRestrictedServers", "TestRestricted"},
	"Transfers and cookies": {"TestServersMayNotTransfer", "TestServersThatMayNot"},
	"Hosts":                 {"TestForcedHosts", "TestHostNames"},
	"Passthrough":           {"TestPassthrough", "TestPassedFields", "TestCache"},
	"Lite routes":           {"TestLite", "TestLiteBytes", "TestLiteOrder", "TestLiteTimes"},
	"Modded clients":        {"TestForge", "TestFML", "TestForgeLogin", "TestForgeFallback", "TestModdedConfiguration", "TestLargest"},
	"Bedrock Edition":       {"TestBedrock", "TestBedrockLinked", "TestBedrockRefused"},
	"Built-in world":        {"TestJoinWithEveryProtocol", "TestLimboWithBots", "TestVoiceInTheBuiltInWorld"},
	"Voice":                 {"TestVoice", "TestBridge", "TestSpectators", "TestHiddenPlayersAreNowhere", "TestNobodyHiddenIsNamed"},
	"Who is heard by whom":  {"TestServerWithItsOwnUUIDs", "TestVisibility06Vanish", "TestVisibility11Ages"},
	"Ranges":                {"TestRangesLine", "TestRegions", "TestTiers"},
	"Groups":                {"TestGroups", "TestGroupsUnderAbuse", "TestPersistentGroupsAreBoundedByOwner", "TestNames", "TestNobodyIsLockedOutByTheGuessesOfOthers", "TestDecide", "TestGroupsAcrossBackends"},
	"Declared voices":       {"TestDeclaredByCommand", "TestDeclaredAcrossBackends"},
	"Speakers":              {"TestDeclaredByCommand", "TestVoiceOnTheConsole", "TestSpeakerIsHeard", "TestMicrophoneThroughASpeaker", "TestFilesAreHeard"},
	"Moderation":            {"TestServerMute", "TestVoiceCommand", "TestRights", "TestSoundboard"},
	"`/voice`":              {"TestVoiceCommand", "TestVoiceOnTheConsole", "TestDeclaredByCommand", "TestWhy"},
	"State that lasts":      {"TestStateLasts", "TestNamesOfThoseWhoLeft", "TestNothingAcknowledgedIsLost", "TestStateElsewhere", "TestMistakes", "TestDamagedState"},
	"Backups of that":       {"TestDamagedState", "TestWhatIsLostAtTheEndIsListed"},
	"From Go":               {"TestExplainIsWhatIsHeard", "TestAnotherKindOfClient"},
	"RCON":                  {"TestRCON", "TestRCONIsOffByDefault", "TestNobodyCommandsWithoutThePassword", "TestGuessesAreSlow"},
	"Guests who walk":       {"TestWalkOnThePort", "TestWalkWithAnotherClient", "TestGuestSeesPlayers"},
	"Rooms":                 {"TestRoomsOnThePort", "TestRoomsWithAnotherClient"},
	"Watching it":           {"TestAnswers", "TestLog", "TestWhoMaySee", "TestUndecoded"},
}

// TestReadme: whatever the README says of what the program does, there are tests of it.
func TestReadme(t *testing.T) {
	there := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return err
		case d.Name() == "node_modules" || d.Name() == ".git":
			return fs.SkipDir
		}
		for name := range readRoom(path).tests {
			there[name] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(readme), "## What it does")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]string{}
	for _, row := range strings.Split(strings.TrimSpace(table), "\n")[2:] {
		what, says, _ := strings.Cut(strings.Trim(row, "| "), " | ")
		if rows[what] = says; len(says) > 100 || strings.Contains(says, "`Test") {
			t.Errorf("the row %s is for reading at a glance: %s", what, says)
		}
		if readmeTests[what] == nil {
			t.Errorf("there are no tests of %q: enter them in readmeTests", what)
		}
	}
	for what, tests := range readmeTests {
		if rows[what] == "" {
			t.Errorf("the README has lost %q", what)
		}
		for _, name := range tests {
			if !there[name] {
				t.Errorf("%s: there is no %s, which always runs", what, name)
			}
		}
	}
	if m := regexp.MustCompile(`\bTest[A-Z]\w+`).FindString(string(readme)); m != "" {
		t.Errorf("the README names %s, which tells people who run a network nothing", m)
	}
	for _, m := range regexp.MustCompile(`\]\(([\w./]+)\)`).FindAllStringSubmatch(string(readme), -1) {
		if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
			t.Errorf("a link leads nowhere: %v", err)
		}
	}
}
