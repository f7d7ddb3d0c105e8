use nix::unistd::{Gid, Group, Uid, User, setgroups, setresgid, setresuid};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use std::io;

/// Capabilities of the calling thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// It may create devices and routes.
    pub net_admin: bool,
    /// It may open raw sockets.
    pub net_raw: bool,
    /// It may create device nodes. In a user namespace, this capability has no effect.
    pub mknod: bool,
}

impl Capabilities {
    /// Returns the effective capabilities.
    ///
    /// # Errors
    /// If the kernel refuses the request.
    pub fn effective() -> io::Result<Capabilities> {
        let effective = capabilities(None)?.effective;
        Ok(Capabilities {
            net_admin: effective.contains(CapabilitySet::NET_ADMIN),
            net_raw: effective.contains(CapabilitySet::NET_RAW),
            mknod: effective.contains(CapabilitySet::MKNOD),
        })
    }
}

/// A user and a group of this host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    user: Uid,
    group: Gid,
}

impl Identity {
    /// Parses `NAME` or `UID`, optionally followed by `:` and the name or number of a group. The default is
    /// the user's own group.
    ///
    /// # Errors
    /// If there is no such user or group. Also if a UID without an entry is given without a group.
    pub fn find(text: &str) -> Result<Identity, String> {
        let (user, group) = match text.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (text, None),
        };
        let unreadable = |error| format!("the users of this host cannot be read: {error}");
        let known = match user.parse().map(Uid::from_raw) {
            Ok(uid) => User::from_uid(uid),
            Err(_) => User::from_name(user),
        };
        let known = known.map_err(unreadable)?;
        let uid = user.parse().map(Uid::from_raw).ok().or(known.as_ref().map(|known| known.uid));
        let no_user = || format!("this host has no user `{}`", user.escape_debug());
        let group = match group {
            Some(group) => match group.parse().map(Gid::from_raw) {
                Ok(gid) => gid,
                Err(_) => {
                    let known = Group::from_name(group).map_err(unreadable)?;
                    let missing = || format!("this host has no group `{}`", group.escape_debug());
                    known.ok_or_else(missing)?.gid
                }
            },
            None => known.map(|known| known.gid).ok_or_else(|| match uid {
                Some(uid) => format!("user {uid} has no entry, so give its group: {uid}:GID"),
                None => no_user(),
            })?,
        };
        Ok(Identity { user: uid.ok_or_else(no_user)?, group })
    }

    /// Returns whether the user is the superuser.
    #[must_use]
    pub fn is_root(self) -> bool {
        self.user.is_root()
    }

    /// Sets the real, effective and saved user and group of the process, without further groups. This cannot
    /// be undone.
    ///
    /// # Errors
    /// If the process may not change its user and groups.
    pub fn assume(self) -> io::Result<()> {
        setgroups(&[self.group])?;
        setresgid(self.group, self.group, self.group)?;
        Ok(setresuid(self.user, self.user, self.user)?)
    }
}

/// Drops every capability of the calling thread and of the threads and programs that it starts later. Open
/// devices stay open, but no further device can be created.
///
/// # Errors
/// If the kernel refuses the change.
pub fn drop_capabilities() -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name_and_by_number() {
        let root = Identity { user: Uid::from_raw(0), group: Gid::from_raw(0) };
        for text in ["root", "0", "root:root", "0:0", "root:0"] {
            assert_eq!(Identity::find(text), Ok(root), "{text}");
        }
        let number = Identity { user: Uid::from_raw(4_000_123), group: Gid::from_raw(77) };
        assert_eq!(Identity::find("4000123:77"), Ok(number));
        for (text, words) in [
            ("4000123", "user 4000123 has no entry, so give its group: 4000123:GID"),
            ("no-such-user", "this host has no user `no-such-user`"),
            ("no-such-user:0", "this host has no user `no-such-user`"),
            ("root:no-such-group", "this host has no group `no-such-group`"),
            ("", "this host has no user ``"),
            ("-1:0", "this host has no user `-1`"),
        ] {
            assert_eq!(Identity::find(text), Err(words.to_owned()));
        }
    }
}
