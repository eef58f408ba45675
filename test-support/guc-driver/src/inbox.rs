// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages from the GuC that a driver has received and not yet evaluated.

use alloc::vec::Vec;

/// Events and responses, in the order of their arrival.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    /// Messages that are not responses, HXG header first.
    pub events: Vec<Vec<u32>>,
    /// Responses, CT header first.
    responses: Vec<Vec<u32>>,
    fence: u32,
}

impl Inbox {
    /// Returns the fence for the next request, 1 to 0x7fff.
    pub fn next_fence(&mut self) -> u32 {
        self.fence = self.fence % 0x7fff + 1;
        self.fence
    }

    /// Adds a message, CT header first.
    pub fn push(&mut self, message: Vec<u32>) {
        // Message type: event or response.
        match message[1] >> 28 & 7 {
            1 => self.events.push(message[1..].to_vec()),
            _ => self.responses.push(message),
        }
    }

    /// Removes the first event that `matches`.
    pub fn take_event(&mut self, matches: impl Fn(&[u32]) -> bool) -> Option<Vec<u32>> {
        let at = self.events.iter().position(|event| matches(event))?;
        Some(self.events.remove(at))
    }

    /// Removes the response to the request with this fence; returns its HXG header.
    pub fn take_response(&mut self, fence: u32) -> Option<u32> {
        let at = self.responses.iter().position(|response| response[0] >> 16 == fence)?;
        Some(self.responses.remove(at)[1])
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn responses_are_found_by_their_fence_and_events_by_their_contents() {
        let mut inbox = Inbox::default();
        let fences = [inbox.next_fence(), inbox.next_fence()];
        for message in [vec![2 << 16 | 1, 0xf000_0007], vec![3, 0x9000_1002, 5, 1], vec![1 << 16 | 1, 0xe000_0030]] {
            inbox.push(message);
        }
        assert_eq!(fences.map(|fence| inbox.take_response(fence)), [Some(0xe000_0030), Some(0xf000_0007)]);
        assert_eq!(inbox.take_response(1), None, "taken");
        assert_eq!(inbox.take_event(|event| event == [0x9000_1002, 5, 0]), None);
        assert_eq!(inbox.take_event(|event| event[1] == 5), Some(vec![0x9000_1002, 5, 1]));
        assert!(inbox.events.is_empty());
    }
}
