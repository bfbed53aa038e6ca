package configs

import "testing"

// TestBaseURL: what people write for it either works or is an error, and clients are told one form of it.
func TestBaseURL(t *testing.T) {
	for text, want := range map[string]string{
		"https://v.example": "https://v.example", "http://v.example:8080": "http://v.example:8080",
		"https://v.example/": "https://v.example", "https://v.example//": "https://v.example",
		"wss://v.example": "https://v.example", "ws://v.example:25565/": "http://v.example:25565", "WSS://V.example/": "https://V.example",
		"https://v.example/a/b/": "https://v.example/a/b", " https://v.example ": "https://v.example",
		"https://[2001:db8::1]:25565/": "https://[2001:db8::1]:25565", "https://192.0.2.1": "https://192.0.2.1", "https://v.example/.well/x~y_z": "https://v.example/.well/x~y_z",

		"": "", "v.example": "", "v.example:25565": "", "//v.example": "", "https:": "", "https://": "", "https://:25565": "", "ftp://v.example": "", "https:v.example": "",
		"https://v.example/?": "", "https://v.example?x=1": "", "https://v.example/#": "", "https://v.example/#a": "", "https://a:b@v.example": "",
		"https://v.example/voice": "", "https://v.example/voice/": "", "wss://v.example/a/voice": "",
		"https://v.example:": "", "https://v.example:0": "", "https://v.example:65536": "", "https://v.example:x": "",
		"https://v.example/a//b": "", "https://v.example/../a": "", "https://v.example/a/.": "", "https://v.example/a b": "", "https://v.example/a%2fb": "",
		"https://v.example/ä": "", "https://v example": "", "https://v.example/{token}": "",
	} {
		got, err := BaseURL(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}
