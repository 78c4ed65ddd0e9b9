"""Who may read, write and administrate, and how that may change."""

from . import curve, require, wire


class Policy:
    """A policy object whose form is right; [`check_genesis`] and [`check_child`] say whether it may stand."""

    def __init__(self, data, what):
        self.id = wire.sha256(data)
        self.what = what
        outer = wire.written(data, wire.POLICY, what)
        self.text = wire.decoded(outer["body"])
        body = wire.written(self.text, wire.POLICY_BODY, f"{what} body")
        self.root, self.generation, self.previous = body["repository_root"], body["generation"], body["previous"]
        self.signatures = outer["signatures"]
        require(len(self.signatures) == 1, f"{what}: {len(self.signatures)} signatures, expected one")
        wire.shaped(self.signatures[0], wire.POLICY_SIGNATURE, f"{what} signature")
        self.devices = {}
        for device in body["devices"]:
            self.admit(device)
        ids = list(self.devices)
        require(ids == sorted(ids), f"{what}: devices are not sorted by id")
        active = [device["roles"] for device in self.devices.values() if device["revoked_at"] is None]
        require(any(roles["reader"] for roles in active), f"{what}: no active reader")
        require(any(roles["administrator"] for roles in active), f"{what}: no active administrator")

    def admit(self, device):
        wire.shaped(device, wire.DEVICE, f"{self.what} device")
        name, roles = device["device_id"], device["roles"]
        wire.shaped(roles, wire.ROLES, f"{self.what} device {name} roles")
        keys = wire.decoded(device["signing_public_key"]), wire.decoded(device["wrapping_public_key"])
        require(name not in self.devices, f"{self.what}: device {name} stands twice")
        require(wire.device_id(*keys) == name, f"{self.what}: device {name} has other keys")
        require(device["repository_root"] == self.root, f"{self.what}: device {name} has another root")
        require(roles["reader"] or not (roles["writer"] or roles["administrator"]),
                f"{self.what}: device {name} writes or administrates without reading")
        self.devices[name] = device

    def active(self, name, role):
        device = self.devices.get(name)
        return device is not None and device["revoked_at"] is None and device["roles"][role]

    def readers(self):
        return [name for name in self.devices if self.active(name, "reader")]

    def keys(self, name):
        device = self.devices[name]
        return wire.decoded(device["signing_public_key"]), wire.decoded(device["wrapping_public_key"])

    def check_signature(self, authority):
        """Requires the signature of an active administrator of `authority`."""
        signature = self.signatures[0]
        name = signature["device_id"]
        require(authority.active(name, "administrator"), f"{self.what}: signer {name} is not an active administrator")
        require(curve.verify(authority.keys(name)[0], wire.signed_policy(self.text),
                             wire.decoded(signature["signature"])), f"{self.what}: signature verification failed")

    def check_genesis(self, root):
        require(self.root == root, f"{self.what}: another root")
        require(self.generation == 0 and self.previous is None, f"{self.what}: not a first policy")
        require(len(self.devices) == 1, f"{self.what}: {len(self.devices)} devices, expected one")
        (name,) = self.devices
        require(all(self.active(name, role) for role in wire.ROLES), f"{self.what}: owner lacks a role")
        require(wire.repository_root(*self.keys(name)) == root, f"{self.what}: owner's keys do not make the root")
        self.check_signature(self)

    def check_child(self, parent):
        require(self.root == parent.root, f"{self.what}: another root")
        require(self.generation == parent.generation + 1, f"{self.what}: generation does not follow its parent")
        require(self.previous == parent.id, f"{self.what}: previous is not the parent policy")
        for name, device in self.devices.items():
            before = parent.devices.get(name)
            was = before["revoked_at"] if before else None
            if was is None:
                require(device["revoked_at"] in (None, self.generation), f"{self.what}: {name} revoked at a wrong time")
            else:
                require(device["revoked_at"] == was, f"{self.what}: revocation of {name} changed")
        missing = sorted(set(parent.devices) - set(self.devices))
        require(not missing, f"{self.what}: devices {missing} vanished")
        self.check_signature(parent)
