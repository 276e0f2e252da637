// Package git fetches folders of git repositories over https and ssh.
//
// It speaks the smart protocol, version 0, in two exchanges: the advertisement of refs, which is enough for Resolve,
// and one pack with the requested commit, without history if the server allows that. Both go through
// outbound.Network.
//
// With ssh they are one connection that runs only git-upload-pack. The client is golang.org/x/crypto/ssh on a
// connection of the Network, which checks addresses, bytes and deadlines; no ssh program, agent or configuration is
// used. A private key and known_hosts are required, and the host key is checked first. Remotes have a small grammar,
// since the server's shell sees the path.
//
// Of go-git only the formats are used (pkt-lines, pack entries, deltas), not its transports. There is no repository,
// index or checkout: only the files of one commit's tree below the reference's path are written.
//
// The server is not trusted. The advertisement is a stream, the pack has a limit and is in a nameless file, deltas
// have a memory budget and all inflation a work budget, and packs that need much memory take turns. Object names are
// always computed, never taken from the server.
//
// Links, submodules, names that git would not check out (.git in its spellings) and pointers to large-file storage
// are refused with their path. Only content below the reference's path counts.
package git
